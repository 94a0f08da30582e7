import CommandLineKit
import HTTPCore
import SalternServer

extension Arguments {
    /// Reads a userid, or `--id ACCOUNT` instead. Call it after all other options.
    ///
    /// Rejects `--id=ACCOUNT`: it can be a userid. A caller that passes userids without a preceding `--` would act on
    /// another account.
    mutating func account() throws(UsageError) -> AccountReference {
        guard let text = try option("--id", isJoinable: false) else { return .userid(try word("the userid")) }
        guard let id = AccountID(pathParameter: text) else {
            throw UsageError(message: "--id must be an account's id: 36 characters")
        }
        return .id(id)
    }
}
