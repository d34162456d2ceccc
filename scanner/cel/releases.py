"""The differences between Kubernetes releases: one row for each change, 1.36 being the release that the code describes.

Source of truth: the release's `k8s.io/apiserver/pkg/cel`, the cel-go that it vendors (0.17.8 in 1.30, then 0.20.1, 0.22.0,
0.23.2, and 0.26.0 from 1.34 on) and, for the last group, its admission plugins. Each row has the upstream
name. Code that depends on a row reads it by its name; the replacements of overloads are in
`scanner.cel.functions.amended`.

Rules: `docs/semantics/releases.md#libraries-by-release`, `docs/semantics/releases.md#changes-in-137`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

Version: TypeAlias = tuple[int, ...]
"""Major and minor version of Kubernetes; then the minor versions of cel-go and of Go, if a program links others with that release."""
FIRST: Final[Version] = (1, 0)
LAST: Final[Version] = (2, 0)
_KUBERNETES_ALONE: Final = 2


class ReleaseChange(Struct, frozen=True):
    """A change of one minor release.

    It holds from `since`, a pair of major and minor version, to before `until`. `description` describes it in a sentence. A change that
    came with a release of `cel_go` or of `go`, given as its minor version, holds where that is linked.
    """

    name: str
    description: str
    since: Version = FIRST
    until: Version = LAST
    cel_go: int = 0
    go: int = 0

    def holds(self, version: Version) -> bool:
        """Return whether the change holds in a release."""
        if self.cel_go and len(version) > _KUBERNETES_ALONE:
            return version[_KUBERNETES_ALONE] >= self.cel_go
        if self.go and len(version) > _KUBERNETES_ALONE:
            return version[-1] >= self.go
        return self.since <= version < self.until


# --- libraries: environment/base.go; those of Kubernetes' own may be written in new policies one release later

ADDRESSES = ReleaseChange("addresses", "The libraries of `ip` and `cidr` come.", since=(1, 30))
NAMED_FORMATS = ReleaseChange(
    "named formats", "The library of `format.dns1123Label()` and its like comes.", since=(1, 31)
)
SELECTORS = ReleaseChange("selectors", "The authorizer takes field and label selectors.", since=(1, 31))
TWO_VARIABLES = ReleaseChange(
    "two variables", "Macros with two variables come: `all(i, v, …)`, `transformList`.", since=(1, 32)
)
SEMVER = ReleaseChange("semantic versions", "The library of `semver` comes.", since=(1, 33))
OPTIONAL_LISTS = ReleaseChange(
    "lists of optionals", "`first`, `last` and `unwrapOpt` come with the interpreter.", since=(1, 33)
)
LISTS = ReleaseChange(
    "lists", "`sort`, `sortBy`, `distinct`, `flatten`, `lists.range` and their like come.", since=(1, 34)
)
INCLUDES = ReleaseChange("includes", "`includes` comes.", since=(1, 37))
OPTIONAL_NAME = ReleaseChange("name of the optional type", "Expressions may say `optional_type`.", since=(1, 31))
GENERIC_OPTIONAL_NAME = ReleaseChange(
    "generic name of the optional type",
    "`optional_type` names optionals of anything, not a bare type.",
    since=(1, 37),
    cel_go=29,
)

# --- the parser

KNOWN_BACKQUOTES = ReleaseChange(
    "backquotes", "The lexer knows names in backquotes: CEL.g4, ESC_IDENTIFIER.", since=(1, 33)
)
QUOTED_FIELDS = ReleaseChange(
    "quoted fields", "Names in backquotes may name fields: EnableIdentifierEscapeSyntax.", since=(1, 37), cel_go=29
)
VALID_CODE_POINTS = ReleaseChange(
    "valid code points", "Escapes of what is no code point are refused: parser/unescape.go.", since=(1, 33)
)
HIDDEN_ACCUMULATOR = ReleaseChange(
    "hidden accumulator", "What a macro gathers has no name that an expression can use: AccumulatorName.", since=(1, 33)
)
COPIED_TARGETS = ReleaseChange(
    "copied targets", "`optMap` copies its target, which may have a free type then: optMap.", since=(1, 32)
)

# --- the checker and the validators

NAMED_TYPES = ReleaseChange(
    "named types",
    "The name of a type that Kubernetes declares is that type, before a value of it: DeclTypeProvider.FindStructType.",
    since=(1, 32),
)
TYPED_PAIRS = ReleaseChange(
    "typed pairs", "Two variables over what has no static type are of type dyn: checkComprehension.", since=(1, 33)
)
STRICT_NAMES = ReleaseChange(
    "strict names",
    "A leading dot leaves a macro's variables aside, and they hide longer names.",
    since=(1, 37),
    cel_go=27,
)
CHECKED_FORMATS = ReleaseChange(
    "checked formats", "Constant format strings are compared with their arguments: ext/formatting.go.", since=(1, 31)
)
EXEMPT_ANYWHERE = ReleaseChange(
    "mixed literals in formats",
    "Mixed literals are allowed at any depth below `format`, before only in lists and maps: inExemptFunction.",
    since=(1, 31),
)
OPTIONAL_TYPE = ReleaseChange("optional_type", "The type of optionals is called so, before `optional`.", since=(1, 31))

RESULT_TYPES = ReleaseChange(
    "result types", "A refusal for its result's type says which type that is: CompileCELExpression.", since=(1, 32)
)

# --- functions: see `scanner.cel.functions.amended`

EMPTY_SEARCH = ReleaseChange(
    "empty search", "A search outside of a string finds nothing: ext/strings.go, indexOfOffset.", since=(1, 32)
)
LAST_INDEX_IN_NOTHING = ReleaseChange(
    "last index in nothing", "`''.lastIndexOf('a')` errs: ext/strings.go, lastIndexOf.", since=(1, 32), until=(1, 34)
)
CLAMPED_SEARCH = ReleaseChange(
    "clamped search", "A search begins within the string: ext/strings.go.", since=(1, 37), cel_go=29
)
OVERLAPPING_CIDR = ReleaseChange(
    "overlapping networks", "`containsCIDR` masks both networks: library/cidr.go, cidrContainsCIDR.", since=(1, 33)
)
PLAIN_POWERS = ReleaseChange(
    "plain powers", "`%e` has no spaces around its sign: ext/formatting.go, scientificFormatCallback.", since=(1, 33)
)
TYPED_LISTS = ReleaseChange(
    "typed lists", "The run-time type of a list or map is of dyn, before of nothing: types.ListType.", since=(1, 34)
)
LABEL_KEYS = ReleaseChange(
    "label keys", "`qualifiedName` calls what it wants a label key: content.IsLabelKey.", since=(1, 35)
)
ONE_COLON = ReleaseChange(
    "one colon",
    "The host of a web address holds no colon but that of its port: net/url, urlstrictcolons.",
    since=(1, 36),
    go=26,
)
COPIED_QUANTITIES = ReleaseChange(
    "copied quantities", "Arithmetic leaves big quantities as they are: library/quantity.go.", since=(1, 37)
)
NO_NUMBERS_AS_DURATIONS = ReleaseChange(
    "durations", "`duration` takes no number: stdlib/standard.go.", since=(1, 37), cel_go=29
)
BOUNDED_RANGES = ReleaseChange(
    "bounded ranges", "`lists.range` refuses sizes: ext/lists.go, genRange.", since=(1, 37), cel_go=29
)

# --- evaluation and its cost

OPTIONALS_KEPT = ReleaseChange(
    "optionals kept",
    "An optional stays one when a variable is read: interpreter/attributes.go.",
    since=(1, 37),
    cel_go=29,
)
FUNCTION_COSTS = ReleaseChange(
    "function costs",
    "Kubernetes' functions have their own prices: library.CostEstimator, StrictCostOpt.",
    since=(1, 32),
)
OPTIONALS_HAVE_SIZES = ReleaseChange(
    "sizes of optionals", "An optional is as long as what is in it: CostTracker.actualSize.", since=(1, 33)
)
PREFIX_COSTS = ReleaseChange(
    "prefix costs", "`startsWith` costs what its prefix does, and more calls have prices.", since=(1, 37)
)
PASSED_BY = ReleaseChange(
    "passed by",
    "Selecting from what a leading dot names costs nothing where it passes by a local variable.",
    since=(1, 37),
    cel_go=27,
)

STRICT_TIMESTAMPS = ReleaseChange(
    "strict timestamps",
    "`timestamp` takes no text that RFC 3339 forbids: types/timestamp.go, isStrictRFC3339.",
    since=LAST,
    cel_go=30,
)
IN_TURN = ReleaseChange(
    "in turn",
    "A call evaluates no argument after one that fails: interpreter/interpretable.go.",
    since=LAST,
    cel_go=30,
)

# --- what policies hand to expressions, and what mutating policies do with patches: plugin/policy

WRAPPED_OBJECTS = ReleaseChange(
    "wrapped objects", "Expressions see native objects as wrappers of Go values.", since=(1, 37)
)
MISSING_KEYS = ReleaseChange(
    "missing keys",
    "An element of a keyed list may lack some of its keys: structured-merge-diff v6, typed/helpers.go.",
    since=(1, 34),
)

CHANGES: Final = tuple(value for value in tuple(globals().values()) if isinstance(value, ReleaseChange))
