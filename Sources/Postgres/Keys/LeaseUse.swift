/// How long a transaction may have a connection for itself.
public enum LeaseUse: Sendable, Equatable {
    /// A few round trips.
    case short
    /// Seconds to minutes, such as the commit of a rotation or a deletion. At most half of the leases are long, and
    /// each party (a client's address, a command) has one of a process at a time.
    case long(by: RequestKey?)
}
