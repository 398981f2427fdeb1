# The program with a Python for its environments:
# docker run --rm -it --privileged -v autoexperiment:/var/cache/autoexperiment -v "$PWD:/work" autoexperiment list
# Without --privileged there are no namespaces: sandboxes then do with landlock, and say what is weaker.
# Bases from elsewhere: docker build --build-arg RUST=... --build-arg PYTHON=... .
ARG RUST=rust:1.95-bookworm
ARG PYTHON=python:3.13-slim-bookworm
FROM ${RUST} AS build
WORKDIR /source
COPY . .
RUN cargo build --release --locked

FROM ${PYTHON}
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*
COPY --from=build /source/target/release/autoexperiment /usr/local/bin/autoexperiment
COPY python/autoexperiment /usr/local/lib/python3.13/site-packages/autoexperiment
# The sandbox's user may not pass /root, where the cache would be.
ENV AUTOEXPERIMENT_CACHE=/var/cache/autoexperiment
WORKDIR /work
ENTRYPOINT ["autoexperiment"]
CMD ["--help"]
