"""Random valid models of the four kinds, drawn from the models' own fields."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from hypothesis import assume
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from pilothouse.api import fields, meta, pod, toolapproval
from pilothouse.api.fields import IntOrString, Items, Json, Text
from pilothouse.api.languagemodel import Model

Strategy = st.SearchStrategy[Any]

_GROUP = "exactly one of "

free_text = st.text(st.characters(codec="utf-8"), max_size=12)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | free_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(free_text, inner, max_size=3),
    max_leaves=5,
)

# A few texts for each pattern; what a pattern refuses is tested where the pattern is.
_SAMPLES = {
    fields.Name: ("a", "a-b", "0"),
    fields.ObjectName: ("a", "a-b", "a.b-c.d"),
    fields.StepName: ("a", "b", "c-d", "e"),
    fields.Variable: ("a", "B_1", "_"),
    fields.Key: ("a", "a.txt", "_-.Z"),
    fields.Duration: ("1h", "5m", "90s", "500ms", "1h30m5s1ms"),
    fields.Timestamp: ("2027-01-01T00:00:00Z", "2027-01-01T00:00:00.5+02:00"),
    fields.Digest: ("sha256:" + "0a" * 32,),
    fields.FailureCode: ("F-TMO", "F-DEP", "F-EXE"),
    fields.Image: ("app", "registry.example.com/app@sha256:00"),
    fields.Url: ("http://a", "https://example.com/x?y=%20"),
    pod.QualifiedName: ("a", "example.com/Team_1"),
    pod.MountPath: ("/", "/data/x y"),
    toolapproval.Nonce: ("0f" * 16,),
}
_BY_PATTERN = {get_args(annotation)[1].pattern: samples for annotation, samples in _SAMPLES.items()}
_SHORT_PATTERNS = ("a", "1.50", "1.2.0", "10.0.0.0/8", "{}", "x/y")


def objects(model: type[BaseModel]) -> Strategy:
    """Instances of a model with all that it requires, a few optional fields, and one field of each one-of group."""
    return OVERRIDES.get(model, _any_object)(model)


@st.composite
def _any_object(draw: st.DrawFn, model: type[BaseModel]) -> BaseModel:
    required = [name for name, field in model.model_fields.items() if field.is_required() or name in _ALWAYS]
    groups = [_names(model, group) for group in _groups(model)]
    grouped = {name for group in groups for name in group}
    optional = [name for name in model.model_fields if name not in {*required, *grouped}]
    chosen = [draw(st.sampled_from(group)) for group in groups]
    extra = draw(st.lists(st.sampled_from(optional), max_size=4, unique=True)) if optional else []
    values = {name: draw(_field(model.model_fields[name])) for name in [*required, *chosen, *extra]}
    for wanted in ([*required, *chosen, *extra], [*required, *chosen]):
        try:
            return model(**{name: values[name] for name in wanted})
        except ValidationError:
            continue  # a rule over several fields refused this mixture
    assume(False)
    raise AssertionError


_ALWAYS = frozenset({"api_version", "kind", "metadata"})


def _groups(model: type[BaseModel]) -> list[list[str]]:
    messages = [rule.message for rule in getattr(model, "rules", ()) if rule.message.startswith(_GROUP)]
    return [message.removeprefix(_GROUP).split(" must ")[0].split(", ") for message in messages]


def _names(model: type[BaseModel], aliases: list[str]) -> list[str]:
    return [name for name, field in model.model_fields.items() if field.alias in aliases]


def _field(field: FieldInfo) -> Strategy:
    return _values(field.annotation, tuple(field.metadata))


def _values(annotation: Any, metadata: tuple[Any, ...]) -> Strategy:
    if hasattr(annotation, "__metadata__"):
        return _values(annotation.__origin__, (*metadata, *annotation.__metadata__))
    known = {type(item): item for item in metadata}
    if Json in known:
        return st.dictionaries(free_text, json_values, max_size=2) if known[Json].only_object else json_values
    if IntOrString in known:
        return st.sampled_from([0, 2, "100m", "1.5", "512Mi"])
    if Text in known:
        return _texts(known[Text])
    return _by_type(annotation, metadata, known.get(Items))


def _by_type(annotation: Any, metadata: tuple[Any, ...], items: Items | None) -> Strategy:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _values(next(option for option in arguments if option is not type(None)), metadata)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple and items:
        return _lists(_values(arguments[0], ()), items)
    if origin is dict:
        return st.dictionaries(st.sampled_from(["a", "b.example/c"]), _values(arguments[1], ()), min_size=1)
    if annotation is bool:
        return st.booleans()
    if annotation in (int, float):
        return _numbers(annotation, metadata)
    return objects(annotation)


def _lists(entry: Strategy, items: Items) -> Strategy:
    smallest, largest, key = items.min, max(items.min, 2), items.key
    if key:
        keyed = st.lists(entry, min_size=smallest, max_size=largest, unique_by=lambda item: getattr(item, key))
        return keyed.map(tuple)
    return st.lists(entry, min_size=smallest, max_size=largest, unique=items.unique).map(tuple)


def _numbers(kind: type, metadata: tuple[Any, ...]) -> Strategy:
    limits = [part for item in metadata for part in (item.metadata if isinstance(item, FieldInfo) else [item])]
    low: Any = next((limit.ge for limit in limits if isinstance(limit, annotated_types.Ge)), -(2**31))
    high: Any = next((limit.le for limit in limits if isinstance(limit, annotated_types.Le)), 2**31)
    return st.integers(low, high) if kind is int else st.floats(low, high)


def _texts(text: Text) -> Strategy:
    if text.pattern in _BY_PATTERN:
        return st.sampled_from(_BY_PATTERN[text.pattern])
    if text.pattern:
        return st.sampled_from([sample for sample in _SHORT_PATTERNS if _accepts(text, sample)])
    return st.text(st.characters(codec="utf-8"), min_size=text.min, max_size=min(text.max, text.min + 12))


def _accepts(text: Text, sample: str) -> bool:
    try:
        TypeAdapter(Annotated[str, text]).validate_python(sample)
    except ValidationError:
        return False
    return True


@st.composite
def _models(draw: st.DrawFn, model: type[BaseModel]) -> BaseModel:
    values: dict[str, Any] = {"provider": draw(_field(model.model_fields["provider"]))}
    needed = "script" if values["provider"] == "Scripted" else "name"
    optional = ["prices"] if values["provider"] == "Local" else ["prices", "base_url", "api_key_from"]
    if values["provider"] == "OpenAI":
        optional.append("api")
    if values["provider"] != "Anthropic":
        optional.append("options")
    for name in (needed, "context_window", *draw(st.lists(st.sampled_from(optional), unique=True))):
        values[name] = draw(_field(model.model_fields[name]))
    if values.get("api") == "Responses":
        values.pop("options", None)
    return model(**values)


@st.composite
def _bare(draw: st.DrawFn, model: type[BaseModel]) -> BaseModel:
    return model(name=draw(st.sampled_from(["a-0a0a0a0a0a0a0a0a", "b.c-0a0a0a0a0a0a0a0a"])), labels={"team/x": "y"})


OVERRIDES: dict[type[BaseModel], Callable[[Any], Strategy]] = {Model: _models, meta.ObjectMeta: _bare}
