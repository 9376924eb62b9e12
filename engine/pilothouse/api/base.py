"""What all API models share: frozen, camelCase outside and snake_case inside, unknown fields refused."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from pilothouse.api.rules import Rule, enforce

GROUP = "pilothouse.dev"
VERSION = "v1alpha1"
API_VERSION: Literal["pilothouse.dev/v1alpha1"] = "pilothouse.dev/v1alpha1"


class ApiModel(BaseModel):
    """A part of a manifest. `rules` span several fields; they end as CEL in the CRD and are checked here as well."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _keep_rules(self) -> ApiModel:
        enforce(self, self.rules)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        result = handler.resolve_ref_schema(handler(schema))
        if cls.rules:
            result["x-kubernetes-validations"] = [{"rule": r.rule, "message": r.message} for r in cls.rules]
        return result

    def manifest(self) -> dict[str, Any]:
        """The JSON object that a user would write: camelCase, and only the fields that were set."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class Observed(ApiModel):
    """A part that the server or a newer release of ours writes: unknown fields are passed over."""

    model_config = ConfigDict(extra="ignore")
