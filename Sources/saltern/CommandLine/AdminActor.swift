import CommandLineKit
import Glibc
import SalternServer

/// Whose name the audit log gets for what a command does.
struct AdminActor {
    /// What the help of commands that leave a row in the audit log says.
    static let help = "  --actor NAME     who does it, for the audit log (the user of the operating system)"

    private let named: AuditActor?

    /// Takes `--actor`.
    init(_ arguments: inout Arguments) throws(UsageError) {
        let name = try arguments.option("--actor")
        named = name.flatMap { AuditActor($0) }
        if name != nil, named == nil {
            throw UsageError(message: "--actor must be 1 to 128 characters without control characters")
        }
    }

    /// Who was named. Else: who called `sudo`, or the user that the process runs as.
    func actor(_ console: Console) -> AuditActor { named ?? Self.current(console.environment) }

    private static func current(_ environment: [String: String]) -> AuditActor {
        // Only root can have been somebody else before; what others write into the variable is their own business.
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
