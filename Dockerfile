# The image holds the binary, CA certificates and nothing else: no shell, no
# package, no other user. Time zones are inside the binary.
FROM golang:1.26-alpine AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -buildvcs=false -trimpath -tags timetzdata -ldflags='-s -w' -o /out/linekeeper ./cmd/linekeeper \
    && mkdir -p /out/secrets

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/linekeeper /linekeeper
# A volume that is mounted here begins with this owner.
COPY --from=build --chown=65532:65532 /out/secrets /secrets
USER 65532:65532
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --retries=3 CMD ["/linekeeper", "healthcheck"]
ENTRYPOINT ["/linekeeper"]
CMD ["serve"]
