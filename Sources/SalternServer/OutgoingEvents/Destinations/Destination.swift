public import Postgres

/// Receives events as a program of the operator: by HTTP at its URL, or by fetching if it has none.
public struct Destination: Sendable, Equatable {
    public let id: DestinationID
    public let name: DestinationName
    public let audience: AudienceName
    /// Nil if a service of the audience fetches the events.
    public let url: String?
    public let kinds: [EventKind]
    public let createdAt: Timestamp
    /// The time since which it receives nothing, because its receiver answered 410.
    public internal(set) var disabledAt: Timestamp?
    /// The time until which the previous secret also signs.
    public let previousUntil: Timestamp?
    /// The secrets, sealed by the master key, the current one first.
    let sealedSecrets: [[UInt8]]

    /// The most destinations of an installation. Each adds a row to every account event.
    public static let limit = 32

    var isDisabled: Bool { disabledAt != nil }

    func disabled(at moment: Timestamp) -> Destination {
        var destination = self
        destination.disabledAt = moment
        return destination
    }

    func gets(_ kind: EventKind) -> Bool { !isDisabled && kinds.contains(kind) }
}

/// Names a destination in the database.
public typealias DestinationID = Identifier<Destination>

/// The name of a destination.
public typealias DestinationName = OperatorName<Destination>

/// The address of a receiver: an https URL without user, fragment or control characters.
public struct DestinationURL: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    static let byteLimit = 2_048

    public init?(_ text: String) {
        guard text.utf8.count <= Self.byteLimit, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
            let match = text.wholeMatch(
                of: #/https:\/\/([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?([\/?][^#\\]*)?/#),
            match.2.map({ (1...65_535).contains(Int($0.dropFirst()) ?? 0) }) ?? true
        else { return nil }
        description = text
    }
}

extension Destination {
    /// Returns the secrets that sign at a time, the current one first. Omits secrets that no master key opens.
    func secrets(at now: Timestamp, _ masterKey: MasterKey) -> [WebhookSecret] {
        // A later end was set while the database's clock was ahead.
        let latest = now + DestinationAdministration.rotationTime + AttemptPolicy.clockSlack
        let isRotating = previousUntil.map { now < $0 && $0 <= latest } ?? false
        return sealedSecrets.prefix(isRotating ? 2 : 1).compactMap {
            (try? masterKey.open($0, for: .destination(id))).map(WebhookSecret.init)
        }
    }
}

extension SealedPlace {
    /// The secrets of a destination.
    static func destination(_ id: DestinationID) -> SealedPlace {
        SealedPlace(authenticatedData: Array("saltern/destination/".utf8) + id.uuid.bytes)
    }
}
