# Two stages: the toolchain builds one executable, which then runs on Debian's own libraries, so that a rebuild with
# newer Debian packages brings every security fix that is not ours.

FROM swift:6.3-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libevent-dev libpq-dev libssl-dev libcurl4-openssl-dev libsqlite3-dev \
        libfido2-dev libcbor-dev pkg-config \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY Package.swift ./
COPY Sources Sources
# The manifest names the tests, which are not built here.
RUN grep --only-matching '"[A-Za-z]*Tests"' Package.swift | tr --delete '"' | sort --unique \
    | while read -r name; do mkdir --parents "Tests/$name" && touch "Tests/$name/None.swift"; done
# They become part of the executable.
COPY Migrations Migrations
COPY clients clients
RUN swift build --configuration release -Xswiftc -cross-module-optimization --product saltern --static-swift-stdlib \
    && install -D --strip "$(swift build --configuration release --show-bin-path --static-swift-stdlib)/saltern" /out/saltern

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libevent-core-2.1-7 libpq5 libssl3 libcurl4 libfido2-1 libcbor0.8 \
        libstdc++6 ca-certificates postgresql-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/saltern --shell /usr/sbin/nologin saltern \
    # A new volume takes over its folder's owner.
    && install --directory --owner saltern --mode 0700 /var/lib/saltern/tls /var/lib/saltern/keys /var/lib/saltern/backups
# pg_dump has to be as new as the server. Debian 12 has that of PostgreSQL 15; another comes from apt.postgresql.org.
ARG POSTGRES_MAJOR=15
RUN [ "$POSTGRES_MAJOR" = 15 ] || { apt-get update && apt-get --yes --no-install-recommends install postgresql-common \
    && /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y \
    && apt-get --yes --no-install-recommends install "postgresql-client-$POSTGRES_MAJOR" && rm -rf /var/lib/apt/lists/*; }
COPY --from=build /out/saltern /usr/bin/saltern
USER saltern
WORKDIR /var/lib/saltern
ENV SALTERN_LISTEN=0.0.0.0:8443 SALTERN_TLS_DIRECTORY=/var/lib/saltern/tls \
    SALTERN_MASTER_KEY_FILE=/var/lib/saltern/keys/master.key
EXPOSE 8443
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["saltern", "health"]
ENTRYPOINT ["saltern"]
CMD ["serve"]
