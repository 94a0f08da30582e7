internal import EventLoop
internal import Glibc

/// Looks host names up on a thread that lives as long as the look-up, because the system's resolver blocks.
enum HostResolver {
    /// What came of looking names up.
    struct Resolved: Sendable {
        var addresses: [String: [String]] = [:]
        /// Why the last name that has none has none.
        var failure: ConnectionFailure?
    }

    private final class Job: Sendable {
        let names: [String]
        let completion: @Sendable (Resolved) -> Void

        init(names: [String], completion: @escaping @Sendable (Resolved) -> Void) {
            self.names = names
            self.completion = completion
        }
    }

    /// Calls `completion` on `loop` with the addresses of each name that has any.
    static func resolve(
        _ names: [String], loop: EventLoop, completion: @escaping @Sendable (Resolved) -> Void
    ) {
        let job = Job(names: names) { resolved in loop.schedule { completion(resolved) } }
        let context = Unmanaged.passRetained(job)
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                let job = Unmanaged<Job>.fromOpaque(context).takeRetainedValue()
                var signals = sigset_t()
                sigfillset(&signals)
                pthread_sigmask(SIG_BLOCK, &signals, nil)
                var resolved = Resolved()
                for name in job.names {
                    switch HostResolver.addresses(of: name) {
                    case .success(let addresses): resolved.addresses[name] = addresses
                    case .failure(let failure): resolved.failure = failure
                    }
                }
                job.completion(resolved)
                return nil
            }, context.toOpaque())
        if code == 0 {
            pthread_detach(thread)
        } else {
            context.release()
            job.completion(Resolved(failure: .system(code)))
        }
    }

    /// The addresses of `name` in the order the system prefers, at least one. Blocks.
    private static func addresses(of name: String) -> Result<[String], ConnectionFailure> {
        var hints = addrinfo()
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(name, nil, &hints, &list)
        guard code == 0 else { return .failure(code == EAI_SYSTEM ? .system(errno) : .resolver(code)) }
        defer { freeaddrinfo(list) }
        var addresses: [String] = []
        var next = list
        while let entry = next?.pointee {
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let code = getnameinfo(
                entry.ai_addr, entry.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
            if code == 0 {
                let length = text.firstIndex(of: 0) ?? text.count
                addresses.append(String(decoding: text[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self))
            }
            next = entry.ai_next
        }
        return addresses.isEmpty ? .failure(.resolver(EAI_NONAME)) : .success(addresses)
    }
}
