# Makes a paper's env image look like an official Python image: `python`, `python3` and `pip` on the path, user root.
ARG ENV
FROM ${ENV}
USER root
RUN home=$(dirname "$(find / -xdev -type f -path '*/bin/python3.*' ! -name '*-*' | head -n 1)") \
 && mkdir -p /usr/local/bin \
 && for name in python3 python; do ln -s "$home"/python3.[0-9]*[0-9] /usr/local/bin/$name; done \
 && python -m ensurepip \
 && ln -s "$home/pip3" /usr/local/bin/pip
ENV PATH=/usr/local/bin:/usr/bin:/bin
