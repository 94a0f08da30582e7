import CommandLineKit
import Glibc
import HTTPCore
import Postgres
import SalternServer

/// The name and the reason of a command's actions in the audit log.
struct AdminActor {
    /// Help text of commands that write to the audit log.
    static let help = help(column: 19)

    /// Returns the help of its options, with descriptions in the given column, counted from 0.
    static func help(column: Int) -> String {
        let options = [
            ("  --actor NAME", "the admin in the audit log (\(Setting.actor), or the user)"),
            ("  --reason TEXT", "the reason in the audit log"),
        ]
        return options.map { option, text in
            option + String(repeating: " ", count: column - option.count) + text
        }.joined(separator: "\n")
    }

    private let named: AuditActor?
    private let reason: AuditReason?

    /// Reads `--actor` and `--reason`.
    init(_ arguments: inout Arguments) throws(UsageError) {
        let (name, reason) = (try arguments.option("--actor"), try arguments.option("--reason"))
        named = name.flatMap { AuditActor($0) }
        self.reason = reason.flatMap { AuditReason($0) }
        if name != nil, named == nil {
            throw UsageError(message: "--actor must be 1 to 128 characters without control characters")
        }
        if reason != nil, self.reason == nil {
            throw UsageError(
                message: "--reason must be 1 to \(AuditReason.limit) characters without control characters")
        }
    }

    /// Signs an action of the command at the database's current time.
    func signature(_ console: Console) async throws -> AuditSignature {
        // An invalid name is reported before anything is done.
        let actor = try actor(console)
        return signature(actor, now: try await DatabaseCommand.now(console))
    }

    /// Signs an action of `actor`.
    func signature(_ actor: AuditActor, now: Timestamp) -> AuditSignature {
        AuditSignature(actor: actor, now: now, reason: reason)
    }

    /// Returns the name of `--actor`, `SALTERN_ACTOR`, the caller of `sudo`, or the user of the process, in this order.
    func actor(_ console: Console) throws(CommandFailure) -> AuditActor {
        if let named { return named }
        var settings = Settings(console.environment)
        let name = settings.text(.actor)
        try settings.finish()
        guard let name else { return Self.current(console.environment) }
        guard let actor = AuditActor(name) else {
            throw CommandFailure("\(Setting.actor) must be 1 to 128 characters without control characters")
        }
        return actor
    }

    /// Returns the options with which another command acts under the same name.
    func words(_ console: Console) throws(CommandFailure) -> [String] {
        ["--actor", try actor(console).name] + (reason.map { ["--reason", $0.text] } ?? [])
    }

    private static func current(_ environment: [String: String]) -> AuditActor {
        // Only root can have switched users. Other users can set the variable to anything.
        if getuid() == 0, let name = environment["SUDO_USER"], let actor = AuditActor(name) { return actor }
        if let name = name(of: getuid()), let actor = AuditActor(name) { return actor }
        return .user(getuid())
    }

    private static func name(of user: uid_t) -> String? {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16_384) { buffer in
            guard let start = buffer.baseAddress, getpwuid_r(user, &entry, start, buffer.count, &found) == 0,
                found != nil, let name = entry.pw_name
            else { return nil }
            return String(cString: name)
        }
    }
}

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
