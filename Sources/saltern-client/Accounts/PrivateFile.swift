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
    static func create(_ path: String, with data: Data) throws { try begin(path).finish(with: data) }

    /// Makes a file that is empty so far: before something is fetched that can be had only once.
    /// - Throws: ``CommandFailure`` when there is one, or none can be made.
    static func begin(_ path: String) throws -> Begun {
        do {
            return Begun(path: path, handle: try make(path))
        } catch let error as CocoaError where error.code == .fileWriteFileExists {
            throw existing(path)
        } catch {
            throw unusable(path)
        }
    }

    /// A file that waits for its content.
    struct Begun {
        fileprivate let path: String
        fileprivate let handle: FileHandle

        func finish(with data: Data) throws(CommandFailure) {
            do {
                try PrivateFile.fill(handle, path, data)
            } catch {
                throw failure(error, path)
            }
        }

        /// There is no content for it.
        func remove() { unlink(path) }
    }

    /// - Throws: ``CommandFailure`` when something is at a path.
    static func refuseExisting(_ path: String) throws(CommandFailure) {
        var status = stat()
        if lstat(path, &status) == 0 { throw existing(path) }
    }

    static func existing(_ path: String) -> CommandFailure {
        CommandFailure("\(path) is there already", status: ExitStatus.exists, code: "file_exists")
    }

    /// Returns the failure of a file that an error has left incomplete.
    static func failure(_ error: any Error, _ path: String) -> CommandFailure {
        guard (error as? CocoaError)?.code == .fileWriteOutOfSpace else { return unusable(path) }
        return CommandFailure("cannot write \(path): the disk is full", status: ExitStatus.store, code: "disk_full")
    }

    static func unusable(_ path: String) -> CommandFailure {
        CommandFailure("cannot write \(path)", status: ExitStatus.store, code: "file_unusable")
    }

    private static func write(_ path: String, _ data: Data) throws { try fill(make(path), path, data) }

    private static func make(_ path: String) throws -> FileHandle {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw CocoaError(errno == EEXIST ? .fileWriteFileExists : .fileWriteUnknown) }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    private static func fill(_ handle: FileHandle, _ path: String, _ data: Data) throws {
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
