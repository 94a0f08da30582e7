import CommandLineKit
import Foundation
import SalternClient

struct ListShares: Command {
    static let words = ["shares"]
    static let summary = "list the active share links"
    static let example = "saltern-client shares"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts

        The links themselves are shown only once, by `saltern-client share`. The server
        does not store them.
        """

    private struct Record: Encodable {
        let id: String
        let createdAt: Date
        let expiresAt: Date?
        let maxViews: Int?
        let views: Int
        let bytes: Int

        init(_ share: ShareHeader) {
            id = share.id
            createdAt = share.createdAt
            expiresAt = share.expiresAt
            maxViews = share.maxViews
            views = share.views
            bytes = share.bytes
        }
    }

    private let account: AccountOption
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
    }

    func run(_ console: Console) async throws {
        let shares = try await account.open(console).vault.shares().map(Record.init)
        try console.show(["shares": shares], asJSON: asJSON) {
            var table = Table([
                .text("id"), .text("created"), .text("expires"), .number("views"), .number("of"), .number("bytes"),
            ])
            for share in shares {
                table.append([
                    share.id, share.createdAt.shown, share.expiresAt?.shown, String(share.views),
                    share.maxViews.map(String.init), String(share.bytes),
                ])
            }
            return table.takeText()
        }
    }
}

struct EndShare: Command {
    static let words = ["shares", "end"]
    static let summary = "end a share link"
    static let usage = ["ID [OPTIONS]"]
    static let example = "saltern-client shares end 5kqvY2Rr"
    static let help = """
        \(AccountOption.help)
          --json                one object, for scripts
        """

    private let account: AccountOption
    private let id: String
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        account = try AccountOption(&arguments)
        id = try arguments.word("the share's ID")
    }

    func run(_ console: Console) async throws {
        try await account.open(console).vault.endShare(id)
        try console.show(["ended": id], asJSON: asJSON) { "share \(VisibleText.visible(id)) has ended\n" }
    }
}
