import HTTPCore
import HTTPServer

/// Everything that the parser says about some bytes.
struct ParsedRequests: Equatable {
    struct Parsed: Equatable {
        var method: String
        var path: String
        var query: String?
        var fields: [String]
        var framing: BodyFraming
        var wantsKeepAlive: Bool
        var expectsContinue: Bool
        var body: [UInt8] = []
        var isComplete = false
    }

    var requests: [Parsed] = []
    var error: HTTP1Error?

    /// Feeds pieces one after the other and asks for events after each.
    init(pieces: some Sequence<[UInt8]>, limits: HTTP1Limits = HTTP1Limits(), bodyLimit: Int = .max) {
        var parser = HTTP1RequestParser(limits: limits)
        for piece in pieces {
            parser.append(piece)
            do throws(HTTP1Error) {
                while let event = try parser.next() {
                    if case .head = event { parser.bodyLimit = bodyLimit }
                    add(event)
                }
            } catch {
                self.error = error
                return
            }
        }
    }

    init(_ text: String, limits: HTTP1Limits = HTTP1Limits(), bodyLimit: Int = .max) {
        self.init(pieces: [Array(text.utf8)], limits: limits, bodyLimit: bodyLimit)
    }

    private mutating func add(_ event: HTTP1Event) {
        switch event {
        case .head(let head):
            requests.append(
                Parsed(
                    method: head.method.name, path: head.path, query: head.query,
                    fields: head.fields.lines.map { "\($0.name): \($0.value)" }, framing: head.framing,
                    wantsKeepAlive: head.wantsKeepAlive, expectsContinue: head.expectsContinue))
        case .body(let bytes):
            requests[requests.count - 1].body += bytes
        case .end:
            requests[requests.count - 1].isComplete = true
        }
    }

    /// `accepted`, `incomplete`, or the code of the problem that a client would see.
    var outcome: String {
        if let error { return error.refusal.problem.code }
        return requests.last?.isComplete ?? false ? "accepted" : "incomplete"
    }
}
