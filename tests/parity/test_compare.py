"""Verdicts beside the response of a server."""

from __future__ import annotations

from dataclasses import replace

from scanner.model.outcome import Check, CheckKind
from scanner.parity.answers import Response, write_warning
from scanner.parity.compare import DROPPED, OTHER_DENIAL, SILENCE, UNSENDABLE, VerdictDifference, compare_verdicts
from scanner.parity.verdicts import Verdict

CHECK = Check(CheckKind.VALIDATION, 0, "e")
FAILS = Verdict("p", "b", CHECK, "no", "no", warns=True, denies=False)
PASSES = replace(FAILS, text="", shown="")
DENIES = Verdict("d", "e", CHECK, "never", "never", warns=False, denies=True)
LETS = replace(DENIES, text="", shown="")
AUDITS = replace(PASSES, warns=False, unseen="audit")
REFUSED = "pods \"w\" is forbidden: ValidatingAdmissionPolicy '{}' with binding '{}' denied request: {}"


def warned(*texts: str, policy: str = "p", binding: str = "b") -> Response:
    """An admitted write with warnings."""
    return Response(201, warnings=tuple(write_warning(policy, binding, text) for text in texts))


def refused(policy: str = "d", binding: str = "e", text: str = "never") -> Response:
    """A refused write."""
    return Response(422, "Invalid", REFUSED.format(policy, binding, text))


def test_a_warning_agrees_with_a_failure() -> None:
    """The texts are equal."""
    assert (1, []) == (
        compare_verdicts([FAILS], warned("no")).agreed,
        compare_verdicts([FAILS], warned("no")).differences,
    )


def test_silence_agrees_with_a_pass() -> None:
    """This holds for a binding that would warn and for one that would deny."""
    assert (2, []) == (
        compare_verdicts([PASSES, LETS], Response(201)).agreed,
        compare_verdicts([PASSES, LETS], Response(201)).differences,
    )


def test_a_failure_that_the_server_does_not_see() -> None:
    """Admission evaluated the request, and returned no warning."""
    assert [VerdictDifference("p", "b", "no", SILENCE)] == compare_verdicts([FAILS], Response(201)).differences
    assert [VerdictDifference("d", "e", "never", SILENCE)] == compare_verdicts(
        [DENIES], Response(409, "AlreadyExists")
    ).differences


def test_a_failure_that_only_the_server_sees() -> None:
    """The difference replaces the pass."""
    comparison = compare_verdicts([PASSES], warned("no"))

    assert (0, [VerdictDifference("p", "b", SILENCE, write_warning("p", "b", "no"))]) == (
        comparison.agreed,
        comparison.differences,
    )


def test_another_text_is_two_differences() -> None:
    """Assay's text is missing, and the server's text is additional."""
    assert 2 == len(compare_verdicts([FAILS], warned("nope")).differences)


def test_a_failure_of_a_policy_that_was_not_evaluated() -> None:
    """The server matches it, and Assay does not."""
    comparison = compare_verdicts([PASSES], warned("no", policy="other"))

    assert (1, ["other"]) == (comparison.agreed, [difference.policy for difference in comparison.differences])


def test_a_refusal_agrees_with_the_failure_it_names() -> None:
    """The warnings of the response count as well."""
    comparison = compare_verdicts([DENIES, FAILS], replace(refused(), warnings=warned("no").warnings))

    assert (2, []) == (comparison.agreed, comparison.differences)


def test_a_refusal_hides_the_others() -> None:
    """A client receives a random one of several denials; a pass that would deny is not observable either."""
    others = [replace(DENIES, binding="other"), replace(DENIES, text="never ever"), LETS]
    comparison = compare_verdicts([DENIES, *others], refused())

    assert (1, [], 3) == (comparison.agreed, comparison.differences, comparison.unseen[OTHER_DENIAL])


def test_a_refusal_of_what_should_pass() -> None:
    """A denial of an object that passes is a difference."""
    assert [VerdictDifference("d", "e", SILENCE, "never")] == compare_verdicts([LETS], refused()).differences


def test_what_no_client_sees_is_counted_by_its_reason() -> None:
    """Verdicts that no client can observe never count as agreement."""
    comparison = compare_verdicts([AUDITS, AUDITS, PASSES], Response(201))

    assert (1, {"audit": 2}) == (comparison.agreed, dict(comparison.unseen))


def test_a_policy_with_a_check_that_cannot_be_compared_may_say_more() -> None:
    """A text of the policy may be that of the check that cannot be compared."""
    anew = replace(PASSES, unseen="anew")

    assert [] == compare_verdicts([anew, PASSES], warned("something")).differences


def test_a_message_that_no_header_can_hold() -> None:
    """The server drops the warning silently."""
    comparison = compare_verdicts([replace(FAILS, text="a\nb")], Response(201))

    assert (0, [], {UNSENDABLE: 1}) == (comparison.agreed, comparison.differences, dict(comparison.unseen))


def test_warnings_that_are_cut() -> None:
    """Beyond 4,096 characters each warning is cut to 256, which still identifies it; dropped warnings are not comparable."""
    texts = [f"{number} " + "x" * 300 for number in range(20)]
    verdicts = [replace(FAILS, text=text) for text in texts]
    response = Response(201, warnings=tuple(write_warning("p", "b", text)[:256] for text in texts[:16]))
    comparison = compare_verdicts(verdicts, response)

    assert (16, [], {DROPPED: 4}) == (comparison.agreed, comparison.differences, dict(comparison.unseen))


def test_warnings_that_fit_are_not_cut() -> None:
    """A shorter text than Assay's is another text."""
    long = "x" * 300

    assert 2 == len(
        compare_verdicts(
            [replace(FAILS, text=long)], Response(201, warnings=(write_warning("p", "b", long)[:256],))
        ).differences
    )


def test_warnings_of_others_count_for_the_total() -> None:
    """4,000 characters of deprecations leave no room for policy warnings."""
    response = Response(201, warnings=("d" * 256, *(f"{number}" + "d" * 255 for number in range(15))))
    comparison = compare_verdicts([replace(FAILS, text="x" * 100)], response)

    assert ([], {DROPPED: 1}) == (comparison.differences, dict(comparison.unseen))


def test_failures_with_one_text_are_one_warning() -> None:
    """Two params with one text cause one warning, and both agree."""
    assert 2 == compare_verdicts([FAILS, FAILS], warned("no")).agreed
