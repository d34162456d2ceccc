# The scanner in an image: two stages, so that what builds it stays behind.
#
#     docker build -t kube-assay .
#     docker buildx build --platform linux/amd64,linux/arm64 --sbom=true --provenance=mode=max -t kube-assay .
#     docker run --rm --read-only --tmpfs /tmp -v ~/.kube/config:/kubeconfig:ro -v assay:/data \
#       kube-assay scan --kubeconfig /kubeconfig
#
# The base is named by the digest of its index, which has an image for each platform.
# It is a glibc distribution: the regular expressions of policies run on RE2, which has no wheel for musl.

FROM python:3.13.14-slim-bookworm@sha256:67a1e1f215ccda113cfc024e8639049257e88f273898f595b61476d128d387e8 AS build
ENV UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_PROJECT_ENVIRONMENT=/opt/assay \
    UV_PYTHON_DOWNLOADS=never
WORKDIR /src
COPY .ci/uv.txt .ci/uv.txt
RUN pip install --no-cache-dir --requirement .ci/uv.txt
# The dependencies change seldom and make a layer of their own.
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN uv sync --locked --no-dev --extra postgres --extra serve --no-install-project
COPY scanner scanner
COPY migrations migrations
COPY reports_templates reports_templates
COPY docs/config.schema.json docs/config.schema.json
COPY docs/report.schema.json docs/report.schema.json
COPY docs/run.schema.json docs/run.schema.json
COPY docs/runs.schema.json docs/runs.schema.json
COPY docs/trend.schema.json docs/trend.schema.json
ARG COMMIT=""
ARG BUILT=""
RUN [ -z "$COMMIT" ] || printf '{"commit": "%s", "built": "%s"}\n' "$COMMIT" "$BUILT" >scanner/build.json
# The second, asynchronous client of the package kubernetes is half of its size, and nothing imports it (ADR 78).
RUN uv sync --locked --no-dev --extra postgres --extra serve --no-editable \
    && rm -rf /opt/assay/lib/python3.13/site-packages/kubernetes/aio

FROM python:3.13.14-slim-bookworm@sha256:67a1e1f215ccda113cfc024e8639049257e88f273898f595b61476d128d387e8
ARG VERSION=unreleased
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="Assay" \
    org.opencontainers.image.description="Audits the objects of a Kubernetes cluster against its admission policies." \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="$VERSION" \
    org.opencontainers.image.revision="$COMMIT" \
    org.opencontainers.image.base.name="docker.io/library/python:3.13.14-slim-bookworm"
RUN rm -rf /usr/local/lib/python3.13/site-packages/pip* /usr/local/lib/python3.13/ensurepip /usr/local/bin/pip* \
    && install -d -o 65532 -g 65532 /data
COPY --from=build /opt/assay /opt/assay
COPY LICENSE /usr/share/doc/kube-assay/LICENSE
ENV PATH=/opt/assay/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    ASSAY_DEFAULT_DB=sqlite:////data/assay.db
VOLUME /data
WORKDIR /data
USER 65532:65532
# A scan begins and ends; there is nothing to ask in between.
HEALTHCHECK NONE
ENTRYPOINT ["assay"]
CMD ["--help"]
