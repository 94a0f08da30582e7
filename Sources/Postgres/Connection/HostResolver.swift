internal import EventLoop
internal import Glibc

/// Resolves host names, each on its own thread, because the system's resolver blocks.
///
/// Lives on its loop. Concurrent requests for a name share one look-up. A name without a reply does not delay the
/// servers of other names. A stopped server often loses its name, and silent name servers fail only after many seconds.
final class HostResolver {
    typealias LookUp = @Sendable (String) -> Result<[String], ConnectionFailure>

    /// The result of resolving several names.
    struct Resolved: Sendable {
        var addresses: [String: [String]] = [:]
        /// The reason why a name has no address.
        var failure: ConnectionFailure?
    }

    /// The time limit for a name when there are other servers, or an earlier result.
    static let patience = Duration.milliseconds(500)

    private let loop: EventLoop
    private let lookUp: LookUp
    /// Names whose look-up is in progress.
    private var underWay: Set<String> = []
    /// The last result of each name.
    private var known: [String: [String]] = [:]
    private var askers: [Asker] = []

    init(loop: EventLoop, lookUp: @escaping LookUp = HostResolver.addresses(of:)) {
        self.loop = loop
        self.lookUp = lookUp
    }

    /// A caller that waits for names.
    private final class Asker {
        var missing: Set<String>
        var resolved = Resolved()
        var isPatient = true
        let hasOthers: Bool
        let completion: (Resolved) -> Void
        var timer: LoopTimer?

        init(_ names: [String], hasOthers: Bool, completion: @escaping (Resolved) -> Void) {
            missing = Set(names)
            self.hasOthers = hasOthers
            self.completion = completion
        }

        /// True if nothing more is waited for.
        var isDone: Bool { missing.isEmpty || !isPatient && (hasOthers || !resolved.addresses.isEmpty) }
    }

    /// Calls `completion` with the addresses of the names that have any.
    ///
    /// It is called when all look-ups have ended, or after ``patience`` once there is a server to connect to.
    /// - Parameter hasOthers: True if there are servers that need no name.
    func resolve(_ names: [String], hasOthers: Bool = false, completion: @escaping (Resolved) -> Void) {
        let asker = Asker(names, hasOthers: hasOthers, completion: completion)
        askers.append(asker)
        let timer = LoopTimer(loop: loop) { [unowned self, unowned asker] in losePatience(asker) }
        timer.schedule(after: Self.patience)
        asker.timer = timer
        for name in asker.missing where underWay.insert(name).inserted { begin(name) }
    }

    private func losePatience(_ asker: Asker) {
        asker.isPatient = false
        for name in asker.missing { asker.resolved.addresses[name] = known[name] }
        finish()
    }

    private func answered(_ name: String, _ result: Result<[String], ConnectionFailure>) {
        underWay.remove(name)
        switch result {
        case .success(let addresses): known[name] = addresses
        // No name server was reached: the last result stays.
        case .failure(.resolver(EAI_AGAIN)): break
        case .failure: known[name] = nil
        }
        for asker in askers where asker.missing.remove(name) != nil {
            asker.resolved.addresses[name] = known[name]
            if known[name] == nil, case .failure(let failure) = result { asker.resolved.failure = failure }
        }
        finish()
    }

    private func finish() {
        let done = askers.filter(\.isDone)
        askers.removeAll(where: \.isDone)
        for asker in done {
            asker.timer?.cancel()
            asker.completion(asker.resolved)
        }
    }

    // MARK: Threads

    private final class Job: Sendable {
        let name: String
        let lookUp: LookUp
        let completion: @Sendable (Result<[String], ConnectionFailure>) -> Void

        init(
            name: String, lookUp: @escaping LookUp,
            completion: @escaping @Sendable (Result<[String], ConnectionFailure>) -> Void
        ) {
            self.name = name
            self.lookUp = lookUp
            self.completion = completion
        }
    }

    private func begin(_ name: String) {
        let bound = LoopBound(self, loop: loop)
        let job = Job(name: name, lookUp: lookUp) { result in
            bound.loop.schedule { bound.value.answered(name, result) }
        }
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
                job.completion(job.lookUp(job.name))
                return nil
            }, context.toOpaque())
        if code == 0 {
            pthread_detach(thread)
        } else {
            context.release()
            job.completion(.failure(.system(code)))
        }
    }

    /// Returns at least one address of `name`, in the system's order of preference. Blocks.
    @Sendable private static func addresses(of name: String) -> Result<[String], ConnectionFailure> {
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
