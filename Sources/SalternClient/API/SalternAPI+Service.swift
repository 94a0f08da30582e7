extension SalternAPI {
    /// Returns the server's description of itself (`GET /v1/service`).
    public func describeService() async throws(APIError) -> ServiceDescription {
        try await call(HTTPRequest(.get, "/v1/service"))
    }

    /// Checks that the server's process is running (`GET /v1/health/live`).
    public func checkLiveness() async throws(APIError) {
        try await call(HTTPRequest(.get, "/v1/health/live"))
    }

    /// Checks that the server can serve requests (`GET /v1/health/ready`).
    public func checkReadiness() async throws(APIError) {
        try await call(HTTPRequest(.get, "/v1/health/ready"))
    }

    /// Returns the KDF parameters of a userid, even of an unknown one (`POST /v1/kdf`).
    public func getKDFParameters(userid: String) async throws(APIError) -> KDFParameters {
        struct Body: Encodable { let userid: String }
        return try await call(Self.request(.post, "/v1/kdf", Body(userid: userid)))
    }
}
