import CommandLineKit
import HTTPCore
import SalternServer

extension Arguments {
    /// Takes a userid, or `--id ACCOUNT` in its place. Ask after every other option was taken.
    mutating func account() throws(UsageError) -> AccountReference {
        guard let text = try option("--id") else { return .userid(try word("the userid")) }
        guard let id = AccountID(pathParameter: text) else {
            throw UsageError(message: "--id must be an account's id: 36 characters")
        }
        return .id(id)
    }
}
