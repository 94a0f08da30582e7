import CommandLineKit
import Foundation

/// Files that only their owner can read.
enum PrivateFile {
    /// Puts a file in the place of another one; a crash leaves the one or the other.
    static func replace(_ file: URL, with data: Data) throws {
        let temporary = file.path + ".new"
        unlink(temporary)
        try write(temporary, data)
        guard rename(temporary, file.path) == 0 else { throw CocoaError(.fileWriteUnknown) }
    }

    /// Makes a file.
    /// - Throws: ``CommandFailure`` when there is one.
    static func create(_ path: String, with data: Data) throws {
        do {
            try write(path, data)
        } catch let error as CocoaError where error.code == .fileWriteFileExists {
            throw CommandFailure("\(path) is there already", status: ExitStatus.exists, code: "file_exists")
        } catch {
            throw CommandFailure("cannot write \(path)", status: ExitStatus.store, code: "file_unusable")
        }
    }

    private static func write(_ path: String, _ data: Data) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw CocoaError(errno == EEXIST ? .fileWriteFileExists : .fileWriteUnknown) }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try handle.write(contentsOf: data)
            try handle.synchronize()
            try handle.close()
        } catch {
            unlink(path)
            throw error
        }
    }
}
