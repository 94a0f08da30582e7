import CommandLineKit
import HTTPCore
import SalternServer

extension Arguments {
    /// Takes a userid, or `--id ACCOUNT` in its place. To be called when all other options were taken.
    ///
    /// `--id=ACCOUNT` is refused: a userid may be such a word, and a caller who passes userids without `--` in front of them
    /// would act on another account.
    mutating func account() throws(UsageError) -> AccountReference {
        guard let text = try option("--id", isJoinable: false) else { return .userid(try word("the userid")) }
        guard let id = AccountID(pathParameter: text) else {
            throw UsageError(message: "--id must be an account's id: 36 characters")
        }
        return .id(id)
    }
}
