"""The two ways in which an expression fails."""


class ExpressionError(ValueError):
    """The expression, or a value that it reads or returns, is wrong: bad input (F-INP).

    `column` counts characters from 1 in the line of the text that the message is about; None where the
    error has no place, as one of evaluation has not.
    """

    def __init__(self, message: str, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.column = column

    def __str__(self) -> str:
        return self.message if self.column is None else f"{self.message} (column {self.column})"


class ExpressionLimit(Exception):  # noqa: N818 - a limit was reached; the expression may be right
    """The expression needs more time, memory or space than one may have: a resource (F-RES)."""
