public import Postgres

/// A program of the operator that inspects its audience's tokens.
public struct Service: Sendable, Equatable {
    public let name: ServiceName
    public let audience: AudienceName
    public let createdAt: Timestamp
}

/// The name of a service.
public typealias ServiceName = OperatorName<Service>
