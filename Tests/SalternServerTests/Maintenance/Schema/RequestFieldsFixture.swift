import HTTPCore

/// Fields of requests that never were sent.
enum RequestFieldsFixture {
    static func bearer(_ token: String) -> RequestFields {
        RequestHead(method: .get, target: "/", fields: [(name: "Authorization", value: "Bearer \(token)")]).fields
    }
}
