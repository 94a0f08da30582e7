import CommandLineKit
import Foundation
import SalternClient

struct ListEvents: Command {
    static let words = ["events"]
    static let summary = "list the security log of the account, latest first"
    static let example = "saltern-client events --limit 10"
    static let help = """
        \(AccountOption.help)
          --limit N             number of events, 1 to 10000 (50)
          --json                one object, for scripts
        """

    private struct Record: Encodable {
        let kind: String
        let occurredAt: Date
        let device: String?
        let session: SessionID?
        let count: Int?

        init(_ event: SecurityEvent) {
            kind = event.kind
            occurredAt = event.occurredAt
            device = event.device?.name
            session = event.sessionId
            count = event.count
        }
    }

    private let account: AccountOption
    private let limit: Int
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        limit = try arguments.integer("--limit", in: 1...10_000) ?? 50
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let vault = try await account.open(console).vault
        var events: [Record] = []
        var page: String?
        repeat {
            let next = try await vault.events(page: page)
            events += next.events.map(Record.init)
            page = next.nextPage
        } while page != nil && events.count < limit
        events = Array(events.prefix(limit))
        try console.show(["events": events], asJSON: asJSON) {
            var table = Table([.text("when"), .text("what"), .text("device"), .number("times")])
            for event in events {
                table.append([event.occurredAt.shown, event.kind, event.device, event.count.map(String.init)])
            }
            return table.takeText()
        }
    }
}
