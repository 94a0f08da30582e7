internal import HTTPCore

/// Permits web pages of other origins to use the API (the CORS protocol of the Fetch standard, §3.3).
///
/// Only these origins receive fields, and only from the API's own routes. Pages of the server and routes of services
/// send none, because credentials of services belong on no web page. A page sends its token in `Authorization`, so
/// credentials that browsers add automatically are never allowed.
public struct WebOrigins: Sendable {
    private let allowed: Set<String>

    /// - Parameter origins: Without any, no reply has a field of this protocol.
    public init(_ origins: [WebOrigin] = []) { allowed = Set(origins.map(\.description)) }

    /// The beginnings of the paths of services.
    private static let servicePaths = ["/v1/tokens/inspect", "/v1/service-events"]

    private static let methods = "GET, HEAD, POST, PUT, PATCH, DELETE"
    private static let requestFields =
        "Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID, Passkey-Assertion, Vault-Head"
    private static let responseFields =
        "Date, ETag, Retry-After, Saltern-Collection, Saltern-Format, Saltern-Iterations, Saltern-Views-Left, X-Request-Id"
    private static let maximumAge = "600"

    /// Returns the reply to a preflight request. Returns nil if the request is none or has another origin.
    /// - Parameter route: The name of a route of the path. Nil if routes are not available yet.
    func preflight(_ head: RequestHead, route: String?) -> Response? {
        guard head.method == .options, head.fields.contains("access-control-request-method"),
            let path = Self.path(route, head, nil), Self.isForPages(path), allows(head.fields["origin"])
        else { return nil }
        return Response(
            status: .noContent,
            fields: [
                "Access-Control-Allow-Methods": Self.methods, "Access-Control-Allow-Headers": Self.requestFields,
                "Access-Control-Max-Age": Self.maximumAge,
            ])
    }

    /// Permits the page that sent a request to read its reply, including errors.
    /// - Parameters:
    ///   - route: The name of the route in the log.
    ///   - head: The request. Nil if its head is unreadable.
    ///   - unread: The parts that were found in an unreadable head.
    func finish(_ response: inout Response, route: String, head: RequestHead?, unread: UnreadHead?) {
        guard !allowed.isEmpty, let path = Self.path(route, head, unread), Self.isForPages(path) else { return }
        response.fields.append("Vary", "Origin")
        guard let origin = head.map({ $0.fields["origin"] }) ?? unread?.origin, allowed.contains(origin) else { return }
        response.fields.append("Access-Control-Allow-Origin", origin)
        response.fields.append("Access-Control-Expose-Headers", Self.responseFields)
    }

    private func allows(_ origin: String?) -> Bool { origin.map(allowed.contains) ?? false }

    /// Returns the template of a route, because a path has several spellings. Without a template, returns the decoded
    /// path of the request.
    private static func path(_ route: String?, _ head: RequestHead?, _ unread: UnreadHead?) -> String? {
        if let route, let space = route.firstIndex(of: " ") { return String(route[route.index(after: space)...]) }
        return (head?.path ?? unread?.path).flatMap { PercentDecoding.decode(Array($0.utf8)[...]) }
    }

    private static func isForPages(_ path: String) -> Bool {
        path.hasPrefix("/v1/") && !servicePaths.contains { path == $0 || path.hasPrefix($0 + "/") }
    }
}

/// An origin of web pages as browsers send it in `Origin` (RFC 6454 §6.2): `https://`, a host in lower case, and a port
/// unless it is 443.
public struct WebOrigin: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// The most bytes of an origin: a host has at most 253, a port 5.
    static let byteLimit = 280

    /// Reads the exact form of browsers. Rejects `https://Example.com`, `https://example.com/` and
    /// `https://example.com:443`.
    public init?(_ text: String) {
        let form = /https:\/\/(?<host>[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:(?<port>[1-9][0-9]{0,4}))?/
        guard text.utf8.count <= Self.byteLimit, let match = text.wholeMatch(of: form), !match.host.contains("..")
        else { return nil }
        if let digits = match.port {
            guard let port = UInt16(digits), port != 443 else { return nil }
        }
        description = text
    }
}
