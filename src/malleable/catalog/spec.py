"""Frozen, validated, comparable values that can be written to and read from a document.

A speedup, a distribution, an arrival process or a policy is a frozen dataclass whose annotations carry
the allowed range (`Annotated[float, Gt(0)]`). The annotations are the single source for validation
(by pydantic), for the reference docs, and for the random values of the conformance tests.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
import re
import sys
import typing
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from annotated_types import Ge, Gt, Le, Lt

from malleable.errors import MalleableError, ParameterError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import TypeAdapter

INFINITY = float("inf")
LONG_NUMBER = re.compile(r"[\d.]{20,}")
MUST = re.compile(r"^\w+ should ")
"""How pydantic begins: `Input should be …`, `String should have …`."""
ALLOWED = "`malleable list --json` shows what each key allows"

Positive = Annotated[float, Gt(0), Lt(INFINITY)]
NonNegative = Annotated[float, Ge(0), Lt(INFINITY)]
OpenFraction = Annotated[float, Gt(0), Lt(1)]
"""Strictly between 0 and 1."""
Probability = Annotated[float, Ge(0), Le(1)]
Count = Annotated[int, Ge(1)]


class Spec:
    """Base of every named kind. Subclasses are frozen dataclasses; `kind` is their module's name.

    `alternatives` lets a document give a parameter in another form: `{"mean": ("rate", to_rate)}` accepts
    the key `mean` in place of the field `rate` and converts it.
    """

    kind: ClassVar[str] = ""
    alternatives: ClassVar[Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Any]]]] = {}
    hint: ClassVar[str] = ALLOWED
    """What to do about a value that is not allowed."""
    to_write: ClassVar[str] = "define a class there"
    """What to do about a file that has none of the kind."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.kind = cls.__dict__.get("kind", cls.__module__.rpartition(".")[2].lstrip("_"))

    def __post_init__(self) -> None:
        for name, check in _validators(type(self)).items():  # type: ignore[arg-type]
            object.__setattr__(self, name, _validated(check, name, getattr(self, name), self.hint))
        self.check()

    def check(self) -> None:
        """Check what no single annotation can say; raise `ParameterError`."""

    @classmethod
    def lacks(cls) -> dict[str, str]:
        """What a class needs before there can be a value of it, and how each thing is written."""
        found = {}
        for name in sorted(getattr(cls, "__abstractmethods__", ())):
            method = getattr(cls, name)
            article = "an" if name[0] in "aeiou" else "a"
            written = f"def {name}{_plain_signature(method)}" if callable(method) else f"a property {name}"
            found[f"{article} `{name}` {'method' if callable(method) else 'property'}"] = written
        return found

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Build from the keys of a document; unknown and missing keys are named."""
        given = dict(parameters)
        fields = {f.name: f for f in dataclasses.fields(typing.cast("Any", cls)) if f.init}
        for key in given:
            if key not in fields and key not in cls.alternatives:
                known = [*fields, *cls.alternatives]
                hint = did_you_mean(str(key), known) if known else f"{cls.kind} takes no keys"
                raise ParameterError(f"{cls.kind} has no key {key!r}", hint)
        for other, (name, convert) in cls.alternatives.items():
            if other in given:
                if name in given:
                    raise ParameterError(f"{cls.kind} takes {name!r} or {other!r}, not both")
                try:
                    given[name] = convert(given)
                except MalleableError as error:
                    raise error.within(other) from None
                del given[other]
        for name, f in fields.items():
            if (
                name not in given
                and f.default is dataclasses.MISSING
                and f.default_factory is dataclasses.MISSING
            ):
                either = " or ".join(
                    repr(k) for k in (name, *(o for o, (n, _) in cls.alternatives.items() if n == name))
                )
                raise ParameterError(f"missing key {either}", f"{cls.kind} needs {', '.join(fields)}")
        return cls(**given)

    def parameters(self) -> dict[str, Any]:
        """The parameters as plain lists, numbers and strings, defaults left out."""
        plain = {}
        for f in dataclasses.fields(typing.cast("Any", self)):
            value = getattr(self, f.name)
            if f.init and not (f.default is not dataclasses.MISSING and value == f.default):
                plain[f.name] = _plain(value)
        return plain

    def to_dict(self) -> dict[str, Any]:
        """The document that `of` reads back: the kind and its parameters."""
        return {"kind": self.kind, **self.parameters()}


def _plain_signature(method: Callable[..., Any]) -> str:
    """The arguments of a method, as a user writes them."""
    made = inspect.signature(method)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in made.parameters.values()]
    result = f" -> {made.return_annotation}" if isinstance(made.return_annotation, str) else ""
    return f"{inspect.Signature(bare)}{result}"


def positive(name: str) -> Callable[[Mapping[str, Any]], float]:
    """A converter's reader: the parameter `name`, checked to be a positive number."""
    return lambda given: validate(Positive, given.get(name))


def whole_number(name: str, value: Any, least: int) -> int:
    """A count, as Python's or NumPy's number; 1e5 is a way to write one, True is not."""
    number = None
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number:
        with contextlib.suppress(OverflowError, ValueError):  # infinite, NaN
            number = int(value)
    if number is not None and number == value and number >= least:
        return number
    raise ParameterError(
        f"{name} must be a whole number of at least {least}, got {value!r:.60}",
        f"leave {name} out, or give a number such as {max(least, 0)}",
    )


def validate(annotation: Any, value: Any) -> Any:
    """Check one value against an annotation; the error names neither field nor class yet."""
    return _validated(_adapter(annotation), None, value)


def _validated(check: Any, name: str | None, value: Any, hint: str = ALLOWED) -> Any:
    place = () if name is None else (name,)
    if not hasattr(check, "validate_python"):
        try:
            return check(value)
        except MalleableError as error:
            raise error.within(*place) from None
    from pydantic import ValidationError  # noqa: PLC0415 - keeps `import malleable` light

    try:
        return check.validate_python(frozen(value))
    except ValidationError as error:
        first = error.errors()[0]
        location = tuple(part for part in first["loc"] if isinstance(part, int))
        raise ParameterError(sentence_of(first), hint, (*place, *location)) from None


def sentence_of(error: Any) -> str:
    """One of pydantic's errors in our words, with the offending value and numbers that can be read."""
    value = error["input"]
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    match error["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return f"is not a key that can be given, got {shown}"
        case "too_short" | "too_long" as kind:
            bound, number = ("least", "min_length") if kind == "too_short" else ("most", "max_length")
            many = error["ctx"][number]
            return f"must have at {bound} {many} entr{'y' if many == 1 else 'ies'}, got {shown}"
    text = MUST.sub("must ", error["msg"])
    is_nan = isinstance(value, float) and math.isnan(value)
    if is_nan or (error["type"].startswith("less_than") and "inf" in text):
        text = "must be a finite number"
    for limit in error.get("ctx", {}).values():  # pydantic writes 1e-100 with a hundred zeros
        text = LONG_NUMBER.sub(f"{limit!r}", text)
    return f"{text}, got {shown}"


@functools.cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415 - keeps `import malleable` light

    return TypeAdapter(annotation, config=ConfigDict(strict=True, arbitrary_types_allowed=True))


@functools.cache
def _validators(cls: Any) -> dict[str, Any]:
    """One check per field: pydantic's for plain values, `of` for fields that are themselves specs."""
    checks: dict[str, Any] = {}
    for f in dataclasses.fields(typing.cast("Any", cls)):
        hint = annotation(cls, f.name)
        is_spec = isinstance(hint, type) and issubclass(hint, Spec) and hasattr(hint, "of")
        checks[f.name] = hint.of if is_spec else _adapter(hint)
    return checks


def annotation(cls: type[Spec], name: str) -> Any:
    """The evaluated annotation of one field, with its range."""
    home = next(c for c in cls.__mro__ if name in inspect.get_annotations(c))
    text = inspect.get_annotations(home)[name]
    if not isinstance(text, str):
        return text
    # Not the text itself: to evaluate a text makes Python forget that it was interrupted, if it is about to
    # end because of that, and its exit status would not say so.
    return eval(compile(text, home.__module__, "eval"), vars(sys.modules[home.__module__]))  # noqa: S307


def frozen(value: Any) -> Any:
    """Lists and arrays as tuples, NumPy scalars as Python's, so that specs hash and compare."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return tuple(frozen(item) for item in value) if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Spec):
        return value.to_dict()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
