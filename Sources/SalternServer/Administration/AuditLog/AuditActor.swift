/// The actor of a row in the audit log: an admin's name, or ``account`` for the account's owner.
public struct AuditActor: Sendable, Hashable {
    /// 1 to 128 characters without control characters.
    public let name: String

    /// The owner of the account that the act concerns.
    public static let account = AuditActor(unchecked: "account")

    /// An unnamed user of the operating system.
    public static func user(_ number: UInt32) -> AuditActor { AuditActor(unchecked: "uid \(number)") }

    /// Accepts a name. Nil if it is empty, too long, or has characters that terminals interpret.
    public init?(_ name: String) {
        guard (1...128).contains(name.unicodeScalars.count), !name.unicodeScalars.contains(where: Self.isRefused) else {
            return nil
        }
        self.name = name
    }

    private init(unchecked name: String) {
        self.name = name
    }

    static func isRefused(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: true
        default: false
        }
    }
}
