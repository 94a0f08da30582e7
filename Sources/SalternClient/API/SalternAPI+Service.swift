extension SalternAPI {
    /// `GET /v1/service`
    public func describeService() async throws(APIError) -> ServiceDescription {
        try await call(HTTPRequest(.get, "/v1/service"))
    }

    /// `GET /v1/health/live`
    public func checkLiveness() async throws(APIError) {
        try await call(HTTPRequest(.get, "/v1/health/live"))
    }

    /// `GET /v1/health/ready`
    public func checkReadiness() async throws(APIError) {
        try await call(HTTPRequest(.get, "/v1/health/ready"))
    }

    /// `POST /v1/kdf`: the parameters that belong to a userid, whether it exists or not.
    public func getKDFParameters(userid: String) async throws(APIError) -> KDFParameters {
        struct Body: Encodable { let userid: String }
        return try await call(Self.request(.post, "/v1/kdf", Body(userid: userid)))
    }
}
