/// The duration for which a transaction may hold a dedicated connection.
public enum LeaseUse: Sendable, Equatable {
    /// A few round trips.
    case short
    /// Seconds to minutes, such as the commit of a rotation or a deletion.
    ///
    /// At most half of the leases are long. Each holder (a client's address, a command) has one of a process at a
    /// time.
    case long(by: RequestKey?)
}
