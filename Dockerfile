# A node, and the command line, in one small image: Python, Suiro and what it needs, nothing to build with.
# Both bases are arguments: `make image` makes them by debootstrap where no registry can be reached.
ARG BUILD_BASE=python:3.11-slim
ARG BASE=python:3.11-slim

FROM ${BUILD_BASE} AS build
COPY build/wheels /wheels
# pip goes with it, and so does what nobody calls: only what runs is copied into the image.
RUN python3 -m venv /opt/suiro \
 && /opt/suiro/bin/pip install --no-cache-dir --no-index --find-links /wheels suiro \
 && /opt/suiro/bin/pip uninstall --yes pip setuptools \
 && cd /opt/suiro/lib/python3*/site-packages \
 && rm -rf pyarrow/include pyarrow/tests pyarrow/src pyarrow/*flight* pyarrow/*substrait* \
 && rm -rf numpy/*/tests numpy/f2py numpy/distutils zstandard/_cffi* uvloop/*.pyx uvloop/*.pxd \
 && /opt/suiro/bin/python3 -m compileall -q /opt/suiro/lib \
 && mkdir /data

FROM ${BASE}
COPY --from=build /opt/suiro /opt/suiro
COPY --from=build --chown=65532:65532 /data /var/lib/suiro
COPY container/passwd container/group /etc/
ENV PATH=/opt/suiro/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# The only place that is written to; the root file system may be read-only.
VOLUME /var/lib/suiro
USER 65532:65532
WORKDIR /var/lib/suiro
EXPOSE 9750 9751
STOPSIGNAL SIGTERM
ENTRYPOINT ["suiro"]
CMD ["--help"]
