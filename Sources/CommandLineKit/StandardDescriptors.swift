import Foundation

/// The three descriptors that every process needs open.
package enum StandardDescriptors {
    /// Opens standard descriptors that the caller has closed, so that no other file or connection gets their numbers.
    ///
    /// Writing to them fails, and counts as lost output. Call this before anything else is opened.
    package static func occupy() {
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 { _ = open("/dev/null", O_RDONLY) }
    }
}
