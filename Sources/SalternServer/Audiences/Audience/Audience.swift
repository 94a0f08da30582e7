public import HTTPCore
public import Postgres

/// A group of the operator's services that accepts identity tokens and shares one set of pairwise names.
public struct Audience: Sendable, Hashable {
    public let name: AudienceName
    /// True if its tokens contain the account's identifier.
    public let seesAccountID: Bool
    /// True if its tokens contain the userid.
    public let seesUserid: Bool

    public init(_ name: AudienceName, seesAccountID: Bool = false, seesUserid: Bool = false) {
        self.name = name
        self.seesAccountID = seesAccountID
        self.seesUserid = seesUserid
    }

    /// Reads `billing`, `billing=account`, `billing=userid` or `billing=account+userid`; nil for anything else.
    public init?(_ text: String) {
        let parts = text.split(separator: "=", omittingEmptySubsequences: false)
        guard let name = AudienceName(String(parts[0])), parts.count <= 2 else { return nil }
        let options = parts.count == 1 ? [] : parts[1].split(separator: "+", omittingEmptySubsequences: false)
        guard options.allSatisfy({ $0 == "account" || $0 == "userid" }), Set(options).count == options.count else {
            return nil
        }
        self.init(name, seesAccountID: options.contains("account"), seesUserid: options.contains("userid"))
    }
}

/// The name of an audience.
public typealias AudienceName = OperatorName<Audience>

/// A name of an audience, a service or a destination: 1 to 64 of `a-z`, `0-9`, `.`, `_` and `-`, the first a letter or
/// a digit. The type names the kind, so that a service's name cannot be used as an audience's.
public struct OperatorName<Named>: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// The most bytes of a name.
    public static var byteLimit: Int { 64 }

    public init?(_ text: String) {
        guard text.utf8.count <= Self.byteLimit, text.wholeMatch(of: /[a-z0-9][a-z0-9._-]*/) != nil else { return nil }
        description = text
    }
}

extension OperatorName: PostgresValue {
    public static var postgresType: PostgresType { .text }

    public func encode(to writer: inout ByteWriter) { description.encode(to: &writer) }

    public static func decode(_ bytes: UnsafeRawBufferPointer?) -> OperatorName? {
        String.decode(bytes).flatMap { OperatorName($0) }
    }
}

extension OperatorName: LogValue {
    public func writeLogValue(to writer: inout JSONWriter) { writer.string(description) }
}
