public import Foundation

/// https://developer.apple.com/documentation/swiftui/group
public struct Group<Content: View>: StandInView {
    nonisolated public init(@ViewBuilder content: () -> Content) {}
}

/// https://developer.apple.com/documentation/swiftui/horizontalalignment
public struct HorizontalAlignment: Sendable {
    public static var leading: HorizontalAlignment { HorizontalAlignment() }
}

/// https://developer.apple.com/documentation/swiftui/vstack
public struct VStack<Content: View>: StandInView {
    nonisolated public init(alignment: HorizontalAlignment, @ViewBuilder content: () -> Content) {}
}

/// https://developer.apple.com/documentation/swiftui/form
public struct Form<Content: View>: StandInView {
    nonisolated public init(@ViewBuilder content: () -> Content) {}
}

/// https://developer.apple.com/documentation/swiftui/section
public struct Section<Content: View>: StandInView {
    nonisolated public init(_ titleKey: LocalizedStringKey, @ViewBuilder content: () -> Content) {}
}

/// https://developer.apple.com/documentation/swiftui/list
public struct List<Content: View>: StandInView {
    nonisolated public init(@ViewBuilder content: () -> Content) {}
}

/// https://developer.apple.com/documentation/swiftui/navigationstack
public struct NavigationStack<Root: View>: StandInView {
    nonisolated public init(@ViewBuilder root: () -> Root) {}
}

/// https://developer.apple.com/documentation/swiftui/foreach
public struct ForEach<Data: RandomAccessCollection, ID: Hashable, Content: View>: StandInView {
    /// https://developer.apple.com/documentation/swiftui/foreach/init(_:id:content:)
    nonisolated public init(
        _ data: Data, id: KeyPath<Data.Element, ID>, @ViewBuilder content: @escaping (Data.Element) -> Content
    ) {}

    /// https://developer.apple.com/documentation/swiftui/dynamicviewcontent/ondelete(perform:)
    nonisolated public func onDelete(perform action: ((IndexSet) -> Void)?) -> some View { ModifiedView() }
}

extension ForEach where Data.Element: Identifiable, ID == Data.Element.ID {
    /// https://developer.apple.com/documentation/swiftui/foreach/init(_:content:)
    nonisolated public init(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content) {}
}
