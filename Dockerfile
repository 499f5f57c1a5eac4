# docker build -t hitmiss . && docker run --rm -v "$PWD:/data" hitmiss score scores.tsv --key key.tsv -p asvspoof5
# The base image is named by its digest; every package comes by its hash (requirements-image.lock, a part of requirements.lock).
ARG PYTHON=python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7
FROM ${PYTHON} AS build
WORKDIR /source
COPY . .
RUN python -m pip install --no-cache-dir --require-hashes -r requirements-image.lock \
    && python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir dist .

FROM ${PYTHON}
COPY --from=build /source/dist/*.whl /source/requirements-image.lock /tmp/
RUN python -m pip install --no-cache-dir --require-hashes -r /tmp/requirements-image.lock \
    && python -m pip install --no-cache-dir --no-deps /tmp/*.whl && rm /tmp/*.whl /tmp/requirements-image.lock \
    && useradd --create-home user
USER user
WORKDIR /data
ENTRYPOINT ["hitmiss"]
CMD ["--help"]
