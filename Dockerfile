# The one image of Pilothouse; the command says which process of it runs. Kept small and quick to rebuild: what changes
# seldom comes first, nothing that builds is in the final stage, and it works with a read-only root.

# What is to be installed, apart from the rest of pyproject.toml: a change of the tools' settings installs nothing anew.
FROM python:3.13-slim-trixie AS requirements
COPY pyproject.toml /
RUN ["python3", "-c", "import tomllib; \
project = tomllib.load(open('/pyproject.toml', 'rb'))['project']; \
extras = project['optional-dependencies']; \
print(*project['dependencies'], *extras['local'], *extras['operator'], *extras['mcp'], sep='\\n', file=open('/requirements.txt', 'w'))"]

# The environment gets no pip of its own: another one installs into it, and is gone when the layer is made. Where the way
# to a package index needs them, a build is given pip's configuration and the roots to trust as secrets, which no layer
# keeps. Byte code is not checked against its sources: they cannot change, and no process may write it anew.
FROM python:3.13-slim-trixie AS environment
COPY constraints.txt /opt/pilothouse/
COPY --from=requirements /requirements.txt /opt/pilothouse/
RUN --mount=type=secret,id=pip --mount=type=secret,id=roots \
    python3 -m venv /tmp/tools \
 && python3 -m venv --without-pip /opt/pilothouse \
 && PIP_CONFIG_FILE=/run/secrets/pip /tmp/tools/bin/python -m pip --python /opt/pilothouse/bin/python install \
      --no-cache-dir --no-compile --only-binary :all: \
      --constraint /opt/pilothouse/constraints.txt --requirement /opt/pilothouse/requirements.txt \
# cel-expr-python's wheel carries its build folder along.
 && rm -rf /tmp/tools /opt/pilothouse/lib/python3.13/site-packages/bazel-project \
 && /opt/pilothouse/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/pilothouse/lib

FROM python:3.13-slim-trixie AS code
COPY constraints.txt /
RUN --mount=type=secret,id=pip --mount=type=secret,id=roots \
    python3 -m venv /tools \
 && PIP_CONFIG_FILE=/run/secrets/pip /tools/bin/python -m pip install \
      --no-cache-dir --only-binary :all: --constraint /constraints.txt hatchling
COPY pyproject.toml README.md LICENSE /source/
COPY engine /source/engine
COPY operator /source/operator
RUN /tools/bin/python -m pip install --no-cache-dir --no-compile --no-deps --no-build-isolation --target /code /source \
 && sed -i '1s|.*|#!/opt/pilothouse/bin/python|' /code/bin/pilothouse \
 && mv /code/bin /commands \
 && python3 -m compileall -q --invalidation-mode unchecked-hash /code

FROM environment
# libseccomp2 comes with Debian's apt; a base without it is a mistake to be seen here, not in a sandbox.
# PostgreSQL's initdb asks for its user's name, so the users have one: the processes' own, and the sandbox's.
RUN ldconfig -p | grep -q 'libseccomp\.so\.2' \
 && echo 'pilothouse:x:10001:\nsandbox:x:10002:' >> /etc/group \
 && echo 'pilothouse:x:10001:10001::/tmp:/usr/sbin/nologin\nsandbox:x:10002:10002::/tmp:/usr/sbin/nologin' >> /etc/passwd
COPY --from=code /commands /opt/pilothouse/bin
COPY --from=code /code /opt/pilothouse/lib/python3.13/site-packages
ENV PATH=/opt/pilothouse/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /tmp
USER 10001:10001
ENTRYPOINT []
CMD ["pilothouse", "--help"]
