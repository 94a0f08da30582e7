@testable import VaultLog

/// The rules of the log once more, in another form: each question is answered by the whole history.
struct LogModel {
    struct Event {
        let number: UInt64
        let author: MemberID
        let time: UInt64
        let payload: EntryPayload
    }

    private(set) var events: [Event] = []

    mutating func append(_ entry: Entry) {
        events.append(
            Event(number: entry.number.value, author: entry.author, time: entry.time.seconds, payload: entry.payload))
    }

    func role(_ member: MemberID) -> Role? {
        var role: Role?
        for event in events {
            switch event.payload {
            case .found where event.author == member: role = .manager
            case .join(let join) where event.author == member: role = terms(join.invitation)?.role
            case .role(member, let new): role = new
            case .remove(_, let members) where members.contains(member): role = nil
            case .leave where event.author == member: role = nil
            default: break
            }
        }
        return role
    }

    var owner: MemberID? {
        events.last { event in
            switch event.payload {
            case .found, .accept: true
            default: false
            }
        }?.author
    }

    /// The number of the standing offer, and its receiver.
    var offer: (UInt64, MemberID)? {
        var offer: (UInt64, MemberID)?
        for (index, event) in events.enumerated() {
            switch event.payload {
            case .offer(let member): offer = member.map { (event.number, $0) }
            case .accept: offer = nil
            default:
                // Any moment without the role ends it.
                let past = LogModel(events: Array(events[...index]))
                if let receiver = offer?.1, past.role(receiver) != .manager { offer = nil }
            }
        }
        return offer
    }

    private init(events: [Event]) { self.events = events }
    init() {}

    private func terms(_ id: InvitationID) -> InvitationTerms? {
        for event in events {
            if case .invite(let terms) = event.payload, terms.id == id { return terms }
        }
        return nil
    }

    private func isOpen(_ id: InvitationID, at time: UInt64) -> Bool {
        guard let terms = terms(id),
            let opening = events.firstIndex(where: { if case .invite(terms) = $0.payload { true } else { false } })
        else { return false }
        var joins = 0
        var times: [MemberID: UInt64] = [:]
        for (index, event) in events.enumerated() {
            let past = LogModel(events: Array(events[..<index]))
            switch event.payload {
            case .leave, .join, .rekey: break
            default: times[event.author] = max(times[event.author] ?? 0, event.time)
            }
            guard index > opening else { continue }
            switch event.payload {
            case .revoke(id), .rotate, .remove: return false
            case .role(let member, let role): if let former = past.role(member), role < former { return false }
            case .join(let join) where join.invitation == id: joins += 1
            case .leave, .rekey:
                if event.author == events[opening].author || past.invitation(event.author) == id { return false }
            default: break
            }
        }
        let clock = times.values.sorted().dropLast().last ?? 0
        return joins < Int(terms.uses) && max(time, clock) <= terms.expiry.seconds
    }

    private func invitation(_ member: MemberID) -> InvitationID? {
        for event in events where event.author == member {
            if case .join(let join) = event.payload { return join.invitation }
        }
        return nil
    }

    private var generation: UInt64 {
        events.reduce(0) { count, event in
            switch event.payload {
            case .found, .rotate, .remove: count + 1
            default: count
            }
        }
    }

    /// Returns true for an entry with right signatures and numbers that is valid now.
    func accepts(_ entry: Entry) -> Bool {
        let author = role(entry.author)
        switch entry.payload {
        case .found: return false
        case .join(let join): return author == nil && isOpen(join.invitation, at: entry.time.seconds)
        case .leave: return author != nil && entry.author != owner
        case .rekey: return author != nil
        default: break
        }
        guard author == .manager else { return false }
        switch entry.payload {
        case .role(let member, let new):
            return role(member) != nil && role(member) != new && member != owner
        case .remove(let next, let members):
            return next.number.value == generation + 1
                && members.allSatisfy { role($0) != nil && $0 != owner && $0 != entry.author }
        case .rotate(let next): return next.number.value == generation + 1
        case .revoke(let id): return terms(id) != nil && isOpen(id, at: 0, forgiving: true)
        case .offer(let member):
            guard entry.author == owner else { return false }
            return member.map { role($0) == .manager && $0 != owner } ?? (offer != nil)
        case .accept(let number): return offer.map { $0 == (number.value, entry.author) } ?? false
        case .invite: return true
        case .seal(let seal): return events.contains { cuts($0.number, seal.author) }
        case .found, .join, .leave, .rekey: return false
        }
    }

    /// An expired invitation can be revoked.
    private func isOpen(_ id: InvitationID, at time: UInt64, forgiving: Bool) -> Bool {
        guard let terms = terms(id) else { return false }
        var model = self
        model.events = events.map { event in
            if case .invite(terms) = event.payload {
                let endless = InvitationTerms(
                    id: id, admissionKey: terms.admissionKey, role: terms.role,
                    expiry: EntryTime(seconds: EntryTime.limit).known, uses: terms.uses, hasCode: false
                ).known
                return Event(number: event.number, author: event.author, time: event.time, payload: .invite(endless))
            }
            return event
        }
        return model.isOpen(id, at: time)
    }

    /// The writers with no seal after the last entry that has cut them off.
    var unsealed: Set<MemberID> {
        Set(
            events.map(\.author).filter { member in
                guard let cut = events.last(where: { cuts($0.number, member) }) else { return false }
                return !events.contains { event in
                    guard case .seal(let seal) = event.payload else { return false }
                    return seal.author == member && event.number > cut.number
                }
            })
    }

    private func cuts(_ number: UInt64, _ member: MemberID) -> Bool {
        let index = Int(number) - 1
        let past = LogModel(events: Array(events[..<index]))
        guard past.role(member)?.writes ?? false else { return false }
        switch events[index].payload {
        case .leave, .rekey: return events[index].author == member
        case .remove(_, let members): return members.contains(member)
        case .role(member, let role): return !role.writes
        default: return false
        }
    }
}
