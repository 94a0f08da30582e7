internal import Glibc

/// Runs a program to its end; for the tools of PostgreSQL, in tests only.
enum Subprocess {
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    /// Runs `arguments[0]`, found by its path, with its output thrown away. Blocks the calling thread.
    /// - Throws: ``Failed`` when it cannot be started or ends with another status than 0.
    static func run(_ arguments: [String]) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (descriptor, flags) in [(0, O_RDONLY), (1, O_WRONLY), (2, O_WRONLY)] as [(CInt, CInt)] {
            posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", flags, 0)
        }
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        defer { for word in words { free(word) } }
        words.append(nil)
        var process = pid_t()
        let code = posix_spawnp(&process, arguments[0], &actions, nil, words, environ)
        guard code == 0 else { throw Failed(description: "\(arguments[0]): \(String(cString: strerror(code)))") }
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { throw Failed(description: "waitpid: \(errno)") }
        }
        guard status == 0 else {
            throw Failed(description: "\(arguments.joined(separator: " ")) ended with status \(status >> 8)")
        }
    }
}
