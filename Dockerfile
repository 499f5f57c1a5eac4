# docker build -t hitmiss . && docker run --rm -v "$PWD:/data" hitmiss score scores.tsv --key key.tsv -p asvspoof5
FROM python:3.11-slim AS build
WORKDIR /source
COPY . .
RUN python -m pip install --no-cache-dir build && python -m build --wheel

FROM python:3.11-slim
COPY --from=build /source/dist/*.whl /tmp/
RUN python -m pip install --no-cache-dir /tmp/*.whl && rm /tmp/*.whl && useradd --create-home user
USER user
WORKDIR /data
ENTRYPOINT ["hitmiss"]
CMD ["--help"]
