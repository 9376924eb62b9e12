"""What is left of an HTML page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.tools.web.text import html_to_text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One\n two</p><p>three</p>", "One two\n\nthree"),
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<pre>a\n  b</pre>c", "a\n  b\n\nc"),
        ("<a href='https://x.example/'>x</a> <a href='javascript:no()'>y</a>", "[x](https://x.example/) y"),
        ("<table><tr><td>1<td>2</table>", "| 1 | 2"),
        ("&lt;b&gt; &amp; &uuml;", "<b> & ü"),
        ("<script>if (a<b) no()</script>yes<style>p{}</style>", "yes"),
        ("<head><title> A\n title</title><body>text", "A title\n\ntext"),
        ("<img alt='a cat' src=x><img src=y>", "[image: a cat]"),
        ("</p></a></pre>text<", "text<"),
        ("a <!-- <p>no</p> -->b<!doctype x>", "a b"),
        ("a<p title='>' data=\"'>\" class=it's>b", "a\nb"),
        ("a<p title='never closed>b", "a"),
        ("a<!-- never closed", "a"),
        ("a<script>never closed", "a"),
        ("1 < 2 and 3 <4", "1 < 2 and 3 <4"),
    ],
)
def test_a_page_becomes_text(html: str, text: str) -> None:
    assert html_to_text(html).strip() == text


@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<a",
        "<!",
        "<!--",
        "<![",
        "<?",
        "</",
        "<a href='",
        "<a ='",
        "&",
        "<script>",
        "<svg>",
        "<title>",
        "<p>",
        "<pre>",
        "<a b=c ",
    ],
)
def test_a_page_that_was_made_to_be_slow_is_read(piece: str) -> None:
    """One of 400 KB: with a cost that grows with the square of the length, the test would reach its time limit."""
    html_to_text(piece * (400_000 // len(piece)))


@given(st.text(alphabet="<>/abp =\"'!-&;\n", max_size=200))
def test_no_markup_is_an_error(html: str) -> None:
    html_to_text(html)
