import CommandLineKit
import Foundation

/// A file that programs are given by its descriptor.
final class OpenFile {
    let descriptor: Int32

    /// A file without a name: as long as it has to be, which a pipe that nobody reads is not.
    init(contents: String) throws(CommandFailure) {
        guard let file = tmpfile() else { throw CommandFailure("there is no room for temporary files") }
        descriptor = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3)
        fclose(file)
        let bytes = Array(contents.utf8)
        guard descriptor >= 0, write(descriptor, bytes, bytes.count) == bytes.count else {
            throw CommandFailure("there is no room for temporary files")
        }
    }

    /// What `handle` leads to.
    init(duplicating handle: FileHandle) throws(CommandFailure) {
        descriptor = fcntl(handle.fileDescriptor, F_DUPFD_CLOEXEC, 3)
        guard descriptor >= 0 else { throw CommandFailure("there is no room for descriptors") }
    }

    init(takingOwnershipOf descriptor: Int32) { self.descriptor = descriptor }

    /// A file that is there, to be read.
    init(reading path: String) throws(CommandFailure) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw CommandFailure("\(path): \(String(cString: strerror(errno)))") }
    }

    deinit { close(descriptor) }

    /// Whoever is given it next begins at its beginning.
    func rewind() throws(CommandFailure) {
        guard lseek(descriptor, 0, SEEK_SET) == 0 else {
            throw CommandFailure("a file cannot be read: \(String(cString: strerror(errno)))")
        }
    }

    func contents() throws -> String {
        try rewind()
        let bytes = try FileHandle(fileDescriptor: descriptor).readToEnd()
        return String(decoding: bytes ?? Data(), as: UTF8.self)
    }
}
