internal import CPlatform

extension StoreFileIdentity {
    /// Returns the time of birth as seconds and nanoseconds; nil where the file system or the kernel has none (statx(2)).
    static func birth(ofFileAt path: String) -> String? {
        var (seconds, nanoseconds) = (Int64(0), UInt32(0))
        guard saltern_birth_time(path, &seconds, &nanoseconds) == 0 else { return nil }
        return "\(seconds).\(nanoseconds)"
    }
}
