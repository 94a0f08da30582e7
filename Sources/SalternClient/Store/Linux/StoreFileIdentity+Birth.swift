internal import CPlatform

extension StoreFileIdentity {
    /// Returns the creation time as seconds and nanoseconds; nil if the file system or the kernel does not support it
    /// (statx(2)).
    static func birth(ofFileAt path: String) -> String? {
        var (seconds, nanoseconds) = (Int64(0), UInt32(0))
        guard saltern_birth_time(path, &seconds, &nanoseconds) == 0 else { return nil }
        return "\(seconds).\(nanoseconds)"
    }
}
