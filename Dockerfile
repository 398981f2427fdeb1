# The program with a Python for its environments: docker run --rm -it --privileged -v "$PWD:/work" autoexperiment list
# Sandboxes need namespaces, which a container has only when it is privileged; without them use --sandbox none in here, or
# run autoexperiment on the machine itself.
FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
RUN cargo build --release --locked

FROM python:3.13-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*
COPY --from=build /source/target/release/autoexperiment /usr/local/bin/autoexperiment
COPY python/autoexperiment /usr/local/lib/python3.13/site-packages/autoexperiment
WORKDIR /work
ENTRYPOINT ["autoexperiment"]
CMD ["--help"]
