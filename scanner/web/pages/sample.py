"""A sample of the population of a scan: the rule and the items that `assay sample` draws, from the form on the page of the population."""

from __future__ import annotations

import shlex
from tempfile import TemporaryFile
from typing import BinaryIO, Final
from urllib.parse import urlencode

from starlette.responses import Response

from scanner.errors import UsageError
from scanner.proof.sampling import STRATA, SampleOf, SampleRequest, SampleSize, size_for
from scanner.report.formats import samples
from scanner.web.pages.exports import send_download, take_export
from scanner.web.pages.page_request import PageRequest
from scanner.web.requests.parameters import text_of
from scanner.web.requests.refusals import BadRequest

PAGE: Final = "sample.html"
FIELDS: Final = ("of", "policy", "n", "confidence", "tolerable", "seed", *STRATA)
_KINDS: Final = (SampleOf.OBJECTS, SampleOf.PASSES, SampleOf.FINDINGS)
_DIGITS: Final = 5
_DEFAULT: Final = 25


def sample_page(page: PageRequest) -> str:
    """The rule and the items. Raises BadRequest for a sample that has no rule."""
    request, policy = _read_request(page)
    with take_export(), TemporaryFile() as population:
        description = samples.sample_of(page.view.document, request, policy, population)
    query = urlencode([(name, value) for name in FIELDS if (value := text_of(page.request, name))])
    return page.site.page(
        PAGE,
        "web/sample.html",
        "Sample",
        sample=description.sample,
        lines=list(description.lines()),
        query=query,
        command=_write_command(page, request, policy),
    )


def download_sample(page: PageRequest, file: str) -> Response:
    """`population.csv` or `sample.csv` of the sample, with the bytes that the command writes. Raises BadRequest."""
    request, policy = _read_request(page)
    document = page.view.document

    def write(out: BinaryIO) -> None:
        if file == samples.POPULATION_FILE:
            samples.write_population(document, samples.PopulationChoice.of_request(request, policy), out)
            return
        with TemporaryFile() as population:
            samples.write_sample(samples.sample_of(document, request, policy, population).sample, out)

    return send_download(write, "text/csv", file, head=page.request.method == "HEAD")


def _read_request(page: PageRequest) -> tuple[SampleRequest, str]:
    """The sample that the parameters name, and the policy. Raises BadRequest."""
    kind = text_of(page.request, "of") or SampleOf.OBJECTS.value
    of = next((each for each in _KINDS if each.value == kind), None)
    if of is None:
        raise BadRequest(f"of: choose {', '.join(each.value for each in _KINDS)}.")
    strata = tuple(name for name in STRATA if text_of(page.request, name))
    seed = text_of(page.request, "seed")
    try:
        return SampleRequest(of, _read_size(page), seed, strata), text_of(page.request, "policy")
    except UsageError as error:
        raise BadRequest(f"{error}.") from error


def _write_command(page: PageRequest, request: SampleRequest, policy: str) -> str:
    """The command that draws the same sample."""
    size = request.size
    number = ["--confidence", str(size.confidence), "--tolerable", str(size.tolerable)] if size.confidence else []
    parts = [
        *("assay", "sample", "--scan", page.scan.id, "--of", request.of.value),
        *(["--policy", policy] if policy else []),
        *(number or ["--n", str(size.items)]),
        *("--seed", request.seed),
        *(["--stratify", ",".join(request.strata)] if request.strata else []),
        *("--out", "sample"),
    ]
    return shlex.join(parts)


def _read_size(page: PageRequest) -> SampleSize:
    """The number of items, or that of a confidence and a tolerable part, which win."""
    if text_of(page.request, "confidence") or text_of(page.request, "tolerable"):
        return size_for(_number(page, "confidence", 0), _number(page, "tolerable", 0))
    return SampleSize(_number(page, "n", _DEFAULT))


def _number(page: PageRequest, name: str, default: int) -> int:
    text = text_of(page.request, name)
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise BadRequest(f"{name}: write a whole number.")
    return int(text)
