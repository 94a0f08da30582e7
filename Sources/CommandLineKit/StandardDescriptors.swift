import Foundation

/// The three descriptors that every process expects to be open.
package enum StandardDescriptors {
    /// Opens those that the caller has closed, so that no file or connection gets their numbers and is then printed to. What
    /// is written to them fails, and is reported as lost. To be called before anything else is opened.
    package static func occupy() {
        for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) < 0 { _ = open("/dev/null", O_RDONLY) }
    }
}
