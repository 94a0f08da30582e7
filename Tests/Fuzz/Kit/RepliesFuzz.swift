import Cryptography
import Foundation

@testable import SalternClient

/// Heads, bodies and events of a server's replies.
func fuzzReplies(_ input: [UInt8]) {
    fuzzEvents(input)
    fuzzHead(input)
    checkBounds(input)
    var text = input
    let tokens = SecretJSON.take(from: &text)
    precondition(text.count == input.count, "a secret has a placeholder of its length")
    read(LoginReply.self, text, tokens)
    read(RegistrationReply.self, text, tokens)
    read(RecoveryReply.self, text, tokens)
    read(CredentialReply.self, text, tokens)
    read(RotationCommitReply.self, text, tokens)
    read(ShareHeader.self, text, tokens)
    read(ServiceDescription.self, input)
    read(KDFParameters.self, input)
    read(KeyringReply.self, input)
    read(AccountDescription.self, input)
    read(SecurityLogPage.self, input)
    read(SharePage.self, input)
    read(SharePayload.self, input)
    read(BatchResult.self, input)
    read(Problem.self, input)
    read(ItemPage.self, input)
    if let page = read(ChangePage.self, input) { follow(page) }
    if let account = try? SalternAPI.decode(AccountDescription.self, input) {
        let room = PlanRoom(ItemUsage(account))
        precondition(room.items >= 0 && room.bytes >= 0, "room is no negative number")
    }
    if let parameters = try? SalternAPI.decode(KDFParameters.self, input) {
        let rule = StretchingRule(saltPrefix: "localhost.saltern:")
        if (try? rule.check(parameters, userid: "ada")) != nil {
            precondition((600_000...10_000_000).contains(parameters.iterations), "iterations have bounds")
            precondition(parameters.salt == "localhost.saltern:ada", "the salt is made of the userid")
        }
    }
}

/// The decoder takes what is out of bounds only in texts that are longer than an input.
private func checkBounds(_ input: [UInt8]) {
    guard !JSONBounds.include(input), !input.contains(0), String(validating: input, as: UTF8.self) != nil else {
        return
    }
    var depth = 0
    let deepest = input.reduce(0) { deepest, byte in
        depth += byte == UInt8(ascii: "[") || byte == UInt8(ascii: "{") ? 1 : 0
        return max(deepest, depth)
    }
    precondition(
        deepest > JSONBounds.depthLimit || (try? JSONSerialization.jsonObject(with: Data(input))) == nil,
        "a short text is within the bounds")
}

@discardableResult
private func read<Reply: Decodable>(
    _ type: Reply.Type, _ text: [UInt8], _ tokens: SecretJSON.Taken? = nil
) -> Reply? {
    try? SalternAPI.decode(type, text, tokens)
}

private func follow(_ page: ChangePage) {
    var progress = PullProgress(SyncLimits())
    try? progress.take(page, after: page.cursor) { 0 }
    for change in page.changes {
        _ = SealedBox.Edit.first.creating(afterHash: SealedBox.Edit.first.previous, deletedAt: change.revision)
        _ = change.content?.shortage(allowed: change.revision.number)
        _ = change.revision.entityTag
    }
}

private func fuzzHead(_ input: [UInt8]) {
    let value = String(decoding: input, as: UTF8.self)
    let head = HTTPReplyHead(status: 503, fields: [("retry-after", value), ("Date", value)])
    if let wait = head.retryAfter { precondition(wait >= .zero && wait <= .seconds(86_400), "a wait has a bound") }
    ServerClock().note(head)
    precondition(SalternAPI.escaped(value).utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }, "a query is ASCII")
}

/// The same events, in whatever pieces they come.
private func fuzzEvents(_ input: [UInt8]) {
    var whole = ServerSentEventParser()
    let expected = whole.take(input)
    var parser = ServerSentEventParser()
    var events: [ServerSentEvents.Event] = []
    let length = 1 + Int(input.first ?? 0) % 7
    for start in stride(from: 0, to: input.count, by: length) {
        events += parser.take(Array(input[start..<min(start + length, input.count)]))
    }
    precondition(events == expected, "pieces make no difference")
}
