/// Who did something that the audit log keeps: an admin's name, or ``account`` for a person's own doing.
public struct AuditActor: Sendable, Hashable {
    /// 1 to 128 characters without control characters.
    public let name: String

    /// The owner of the account that the act concerns.
    public static let account = AuditActor(unchecked: "account")

    /// A user of the operating system that has no name.
    public static func user(_ number: UInt32) -> AuditActor { AuditActor(unchecked: "uid \(number)") }

    /// Takes a name; nil when it is empty, too long, or has characters that a terminal obeys.
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
