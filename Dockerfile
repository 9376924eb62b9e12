# The one image of Pilothouse; the command says which process of it runs. Kept small and quick to rebuild: what changes
# seldom comes first, nothing that builds is in the final stage, and it works with a read-only root.

# What is to be installed, apart from the rest of pyproject.toml: a change of the tools' settings installs nothing anew.
FROM python:3.13-slim-trixie AS requirements
COPY pyproject.toml /
RUN ["python3", "-c", "import tomllib; \
project = tomllib.load(open('/pyproject.toml', 'rb'))['project']; \
extras = project['optional-dependencies']; \
print(*project['dependencies'], *extras['local'], *extras['operator'], sep='\\n', file=open('/requirements.txt', 'w'))"]

# The environment gets no pip of its own: that of /build installs into it. Where the way to a package index needs them, the
# build is given pip's configuration and the roots to trust as secrets, which no layer keeps.
# Byte code is checked by nobody: its sources cannot change, and no process may write it later.
FROM python:3.13-slim-trixie AS dependencies
COPY constraints.txt /
COPY --from=requirements /requirements.txt /
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=roots \
    python3 -m venv /build \
 && python3 -m venv --without-pip /opt/pilothouse \
 && /build/bin/python -m pip --python /opt/pilothouse/bin/python install --no-cache-dir --no-compile --only-binary :all: \
      --constraint /constraints.txt --requirement /requirements.txt \
 && /build/bin/python -m pip install --no-cache-dir --only-binary :all: --constraint /constraints.txt hatchling \
 # cel-expr-python's wheel carries its build folder along.
 && rm -rf /opt/pilothouse/lib/python3.13/site-packages/bazel-project \
 && /opt/pilothouse/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/pilothouse/lib

FROM dependencies AS code
COPY pyproject.toml README.md LICENSE /source/
COPY engine /source/engine
COPY operator /source/operator
RUN /build/bin/python -m pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel /source \
 && /build/bin/python -m pip --python /opt/pilothouse/bin/python install --no-cache-dir --no-compile --no-deps \
      --target /code /wheel/*.whl \
 && mv /code/bin /commands \
 && /opt/pilothouse/bin/python -m compileall -q --invalidation-mode unchecked-hash /code

FROM python:3.13-slim-trixie
# libseccomp2 comes with Debian's apt; a base without it is a mistake to be seen here, not in a sandbox.
# PostgreSQL's initdb asks for its user's name, so the users have one: the processes' own, and the sandbox's.
RUN ldconfig -p | grep -q 'libseccomp\.so\.2' \
 && echo 'pilothouse:x:10001:\nsandbox:x:10002:' >> /etc/group \
 && echo 'pilothouse:x:10001:10001::/tmp:/usr/sbin/nologin\nsandbox:x:10002:10002::/tmp:/usr/sbin/nologin' >> /etc/passwd
COPY --from=dependencies /opt/pilothouse /opt/pilothouse
COPY --from=code /commands /opt/pilothouse/bin
COPY --from=code /code /opt/pilothouse/lib/python3.13/site-packages
ENV PATH=/opt/pilothouse/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /tmp
USER 10001:10001
ENTRYPOINT []
CMD ["pilothouse", "--help"]
