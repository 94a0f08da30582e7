import SalternServer

extension Settings {
    /// Reads the origins of web pages that may use the API: `SALTERN_ALLOWED_ORIGINS`.
    mutating func allowedOrigins() -> WebOrigins {
        WebOrigins(
            list(
                "SALTERN_ALLOWED_ORIGINS",
                "exact origins such as https://app.example.com or https://app.example.com:8443", "an origin",
                WebOrigin.init))
    }
}
