/// The bounds by which a log always has a number left for a removal.
///
/// From ``windingDown`` on no join is valid. The members then present are at most ``members``. So the later entries are
/// at most 127 of `leave` and `remove`, 128 of `rotate`, one `accept` and ``sealsWindingDown`` of `seal`. These are 511
/// of the 512 numbers that are left.
public enum LogBounds {
    /// The first number that accepts only `leave`, `remove`, `rotate`, `rekey`, `accept` and `seal`, each for a reason.
    public static let windingDown: UInt64 = 3_073
    /// The maximum number of members at one time.
    public static let members = 128
    /// The maximum number of open invitations.
    public static let invitations = 64
    /// The maximum number of `seal` entries from ``windingDown`` on for writers that were cut off before it.
    public static let sealsWindingDown = 256
    /// The maximum number of `rekey` entries of one member.
    public static let rekeys = 64
    /// The maximum number of joins by one invitation.
    public static let uses: UInt16 = 32
    /// The longest life of an invitation, in seconds: 30 days.
    public static let invitationLife: UInt64 = 30 * 86_400
}
