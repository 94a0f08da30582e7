import CPlatform
import CommandLineKit
import Foundation

/// A file that gets its name when it is complete.
///
/// Until then it has none, and the system removes it when its process ends. On file systems without such files it has a
/// unique temporary name.
final class UnfinishedFile {
    let content: OpenFile
    private let file: String
    /// The temporary name, if any.
    private var unfinished: String?

    /// - Parameters:
    ///   - file: The final name, in the same folder.
    ///   - hasName: True to use a temporary name even where it is not needed.
    /// - Throws: ``CommandFailure`` when the file cannot be written there.
    init(_ file: String, hasName: Bool = false) throws(CommandFailure) {
        self.file = file
        let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
        // A file without a name gets one through /proc, which a chroot may lack.
        let hasName = hasName || access("/proc/self/fd", X_OK) != 0
        var descriptor = hasName ? -1 : open(folder, O_RDWR | O_CLOEXEC | __O_TMPFILE, mode_t(0o600))
        if descriptor < 0 {
            let name = file + "." + UUID().uuidString.prefix(8).lowercased() + ".unfinished"
            descriptor = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw Self.failure("cannot write \(file)") }
            unfinished = name
        }
        content = OpenFile(takingOwnershipOf: descriptor)
    }

    deinit { if let unfinished { unlink(unfinished) } }

    /// Gives the file its name, without replacing another file.
    /// - Throws: ``CommandFailure`` when the name is taken, or the disk rejects it.
    func keep() throws(CommandFailure) {
        guard fsync(content.descriptor) == 0 else { throw Self.failure("cannot keep \(file)") }
        guard name() == 0 else {
            if errno == EEXIST { throw CommandFailure("\(file) is there already") }
            throw Self.failure("cannot keep \(file)")
        }
        // The name must survive a power failure.
        let folder = open(URL(fileURLWithPath: file).deletingLastPathComponent().path, O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { throw Self.failure("cannot keep \(file): its folder cannot be opened") }
        let result = fsync(folder)
        let code = errno
        close(folder)
        // EINVAL: the file system does not support this, and has nothing to lose.
        if result != 0, code != EINVAL {
            errno = code
            throw Self.failure("\(file) may be gone after a power failure: its folder")
        }
    }

    private func name() -> Int32 {
        guard let unfinished else {
            return linkat(AT_FDCWD, "/proc/self/fd/\(content.descriptor)", AT_FDCWD, file, AT_SYMLINK_FOLLOW)
        }
        // 1 is RENAME_NOREPLACE. Some file systems support only this call, others only `link`.
        if saltern_renameat2(AT_FDCWD, unfinished, AT_FDCWD, file, 1) == 0 {
            self.unfinished = nil
            return 0
        }
        return errno == EEXIST ? -1 : link(unfinished, file)
    }

    private static func failure(_ what: String) -> CommandFailure {
        CommandFailure("\(what): \(String(cString: strerror(errno)))")
    }
}
