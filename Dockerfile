# docker build -t hitmiss . && docker run --rm -v "$PWD:/data" hitmiss score scores.tsv --key key.tsv -p asvspoof5
# The base image is named by its digest; versions are those of requirements.lock.
ARG PYTHON=python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7
FROM ${PYTHON} AS build
WORKDIR /source
COPY . .
RUN sed -nE 's/^([A-Za-z0-9._-]+==[^\]+).*/\1/p' requirements.lock > /constraints.txt \
    && python -m pip install --no-cache-dir -c /constraints.txt build && python -m build --wheel

FROM ${PYTHON}
COPY --from=build /source/dist/*.whl /constraints.txt /tmp/
RUN python -m pip install --no-cache-dir -c /tmp/constraints.txt /tmp/*.whl && rm /tmp/*.whl /tmp/constraints.txt \
    && useradd --create-home user
USER user
WORKDIR /data
ENTRYPOINT ["hitmiss"]
CMD ["--help"]
